import './hello.test';
