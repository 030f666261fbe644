"""Independent formulas of every kind of joint, load and shape, one row each; the tests and the fuzzer use them."""
