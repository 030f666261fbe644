"""Batches of solves that answer a question: the papers' experiments, repeated and set beside what they printed."""
