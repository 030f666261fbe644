"""The papers' experiments, compared with the published results; ``cardan papers NAME`` repeats one."""
