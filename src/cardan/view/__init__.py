"""The workbench: a mechanism in the browser, under the mouse."""
