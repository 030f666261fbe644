"""The kernel that evaluates formulas of variables: numbers in the tables, and their derivatives.

    expanded ← floats, with  floats[position] = node − shift  for every output,  tangents ← nodes,

where node k is an operation on earlier nodes.  Reads the table of variables (:mod:`cardan.system.tables`), the floats
of the system and the variables in q; writes the expanded floats, the tangents, and the values of the nodes.
"""

from math import acos, asin, atan, atan2, cos, cosh, exp, log, nan, sin, sinh, sqrt, tan, tanh

from cardan.kernel.jit import evaluator, exact_inner
from cardan.kernel.memory import tail
from cardan.system.tables import Node, Output, VariableTable

NODE, OUTPUT = Node.size, Output.size


@exact_inner
def power(a, b):
    """a to the power b."""
    if a > 0.0 or (a < 0.0 and b == int(b)) or (a == 0.0 and b >= 0.0):
        return a**b
    return nan


@exact_inner
def apply_function(op, a):
    """The value of a function of one number; NaN where it is not defined."""
    if op == 6:
        return sqrt(a) if a >= 0.0 else nan
    if op == 7:
        return sin(a)
    if op == 8:
        return cos(a)
    if op == 9:
        return tan(a)
    if op == 10:
        return exp(a) if a < 700.0 else nan
    if op == 11:
        return log(a) if a > 0.0 else nan
    if op == 12:
        return asin(a) if abs(a) <= 1.0 else nan
    if op == 13:
        return acos(a) if abs(a) <= 1.0 else nan
    if op == 14:
        return atan(a)
    if op == 15:
        return sinh(a) if abs(a) < 700.0 else nan
    if op == 16:
        return cosh(a) if abs(a) < 700.0 else nan
    return tanh(a)


@exact_inner
def apply(op, a, b):
    """The value of an operation; NaN where it is not defined."""
    if op == 2:
        return a + b
    if op == 3:
        return a - b
    if op == 4:
        return a * b
    if op == 5:
        return a / b if b != 0.0 else nan
    if op == 18:
        return atan2(a, b)
    if op > 18:
        return power(a, b)
    return apply_function(op, a)


def _expand(op, ints, floats, q, step, out, jacobian, work):
    """ints: from the table of variables on.  q: the variables.  out: expanded floats, tangents, values of the nodes."""
    table = VariableTable(ints)
    size = table.floats
    tangents = tail(out, size)
    nodes = tail(out, size + table.tangents)
    for k in range(table.nodes):
        node = Node(table.records, k)
        if node.operation == 0:
            nodes[k] = floats[node.a]
        elif node.operation == 1:
            nodes[k] = q[node.a]
        else:
            nodes[k] = apply(node.operation, nodes[node.a], nodes[node.b])
    for k in range(size):
        out[k] = floats[k]
    outputs = tail(table.records.as_ints, NODE * table.nodes)
    for k in range(table.outputs):
        output = Output(outputs, k)
        shift = floats[output.shift] if output.shift >= 0 else 0.0
        out[output.place] = nodes[output.node] - shift
    numbers = tail(outputs, OUTPUT * table.outputs)
    for k in range(table.tangents):
        tangents[k] = nodes[numbers[k]]
    return 0


EXPAND = evaluator(_expand)
