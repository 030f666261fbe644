"""Studies: many runs over samples of the parameters, kept in parts, on threads, processes or a cluster."""
