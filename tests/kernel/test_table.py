"""Laws of tables and workspaces: the same bytes in Python and in kernels, and no field that is not declared."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from cardan.kernel.fields import after, local
from cardan.kernel.jit import inner, jit
from cardan.kernel.memory import JIT_DISABLED, pointer
from cardan.kernel.table import Address, Float, Int, Piece, Ref, Table, Within, Workspace, describe

pytestmark = pytest.mark.nojit


class Item(Table):
    weight: Float  # [kg]
    count: Int


class Sample(Table):
    kind: Int  # FREE or HELD
    stiffness: Float  # [N/m]
    force: Float[3]  # on the hand [N]
    item: Ref[Item]
    numbers: Ref[Float]
    places: Ref[Int]
    solver: Address


class Longer(Sample):
    speed: Float  # [m/s]


class Chain(Table):
    length: Int
    blocks: Int[...]


class Head(Table):
    count: Int
    weights: Within[Float]
    numbers: Within[Int]
    second: Within[Chain]
    chains: Chain[...]


class Work(Workspace):
    residual: Piece  # shape (rows,)
    step: Piece


@inner
def add_force(record, x):
    for i in range(3):
        record.force[i] += x
    record.stiffness *= 2.0
    record.kind += 1


@jit
def change(memory, k, x):
    record = Sample(pointer(memory), k)
    add_force(record, x)
    record.numbers[1] = record.item.weight + record.places[0]
    record.item.count = 7
    return record.stiffness + record.force[2] + record.kind + record.solver


@jit
def add_up(memory, count):
    total = 0
    chain = Chain(pointer(memory))
    for _ in range(count):
        for i in range(chain.length):
            total += chain.blocks[i]
        chain = after(chain, chain.length)
    return total


@inner
def first_word(ints, floats):
    return ints[0] + floats[9]


@jit
def read_head(memory):
    head = Head(pointer(memory))
    chain = head.chains
    total = chain.blocks[0] + 10 * after(chain, chain.length).blocks[0] + 100 * head.second.blocks[0]
    return total + head.weights[1] + head.numbers[0] + first_word(head.as_ints, head.as_floats)


@jit
def count_on_the_stack(n):
    state = local(Item)
    for i in range(n):
        state.weight += 0.5
        state.count += i
    return state.weight + state.count


@jit
def fill(offsets, memory):
    work = Work(pointer(offsets), pointer(memory))
    work.residual[1] = 2.0
    work.step[0] = 3.0


@jit
def sum_of_weights(memory, count):
    record = Sample(pointer(memory))
    total = 0.0
    items = record.item
    for k in range(count):
        total += Item(items, k).weight
    return total


@jit
def fill_the_end(offsets, memory):
    Work(pointer(offsets), pointer(memory)).memory[4] = 1.5


@pytest.mark.parametrize("table", [Sample, Longer])
def test_kernels_read_and_write_the_fields_that_python_sees(table):
    numbers, places, item = np.array([0.0, 0.0]), np.array([40]), Item.new(weight=2.5)
    records = table.new(2, kind=5)
    record = table(records, 1) if table is Sample else records
    if table is Sample:
        owner = Sample.new(kind=3, stiffness=1.5, force=(1, 2, 3), item=item, numbers=numbers, places=places, solver=9)
        record.as_ints[: Sample.size] = owner.as_ints
    else:
        record.kind, record.stiffness, record.force, record.solver = 3, 1.5, (1, 2, 3), 9
        record.item, record.numbers, record.places = item, numbers, places
    k = 1 if table is Sample else 0
    assert change(records.as_ints, k, 0.25) == 3.0 + 3.25 + 4 + 9
    assert record.stiffness == 3.0 and record.kind == 4 and list(record.force) == [1.25, 2.25, 3.25]
    assert list(numbers) == [0.0, 42.5] and item.count == 7
    assert records.kind == (5 if table is Sample else 4)


def test_the_bytes_are_those_of_the_structured_type():
    record = Sample.new(kind=-2, stiffness=0.5, force=(1, 2, 3))
    seen = record.as_ints.view(Sample.dtype)[0]
    assert Sample.dtype.itemsize == 8 * Sample.size == record.as_ints.nbytes
    assert seen["kind"] == -2 and seen["stiffness"] == 0.5 and list(seen["force"]) == [1.0, 2.0, 3.0]
    assert Longer.size == Sample.size + 1 and [*Longer.fields] == [*Sample.fields, "speed"]
    assert Sample.addresses == {"item": 5, "numbers": 6, "places": 7, "solver": 8}


def test_records_of_open_size_follow_each_other():
    assert add_up(np.array([2, 10, 20, 0, 3, 1, 2, 3]), 3) == 36


def test_parts_of_a_table_are_found_by_their_offsets():
    head = Head.new(count=3, weights=8, numbers=10, second=6, open=7)
    head.as_ints[4:8] = 1, 7, 1, 8
    head.weights[:2], head.numbers[:1] = (0.25, 0.5), 2000
    assert head.chains.length == 1 and head.second.blocks[0] == 8 and head.numbers[0] == 2000
    assert read_head(head.as_ints) == 7 + 80 + 800 + 0.5 + 2000 + 3 + 0.5
    assert Head.addresses == {}


def test_a_record_on_the_stack_begins_with_zeros():
    assert count_on_the_stack(4) == 2.0 + 6 == count_on_the_stack(4)


def test_pieces_follow_each_other_as_planned():
    offsets = Work.plan(residual=2, step=3)
    memory = np.zeros(5)
    fill(offsets, memory)
    assert list(offsets) == [0, 2, 5] and list(memory) == [0.0, 2.0, 3.0, 0.0, 0.0]
    assert len(Work(offsets, memory).step) == 3


def test_the_whole_workspace_is_passed_on():
    numbers = np.zeros(5)
    fill_the_end(Work.plan(residual=2, step=3), numbers)
    assert list(numbers) == [0.0, 0.0, 0.0, 0.0, 1.5]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_table_refers_to_an_array_of_records(count):
    items = np.zeros(count, Item.dtype)
    items["weight"] = 2.0
    assert sum_of_weights(Sample.new(item=items).as_ints, count) == 2.0 * count
    assert count == 0 or Item(items, count - 1).weight == 2.0


def test_an_open_field_is_assigned_as_a_whole():
    chain = Chain.new(open=3, length=3, blocks=[4, 5, 6])
    assert list(chain.blocks) == [4, 5, 6] and add_up(chain.as_ints, 1) == 15


class Outer(Table):
    sample: Ref[Sample]


def test_references_are_followed():
    outer = Outer.new(sample=Sample.new(item=Item.new(weight=3.0)))
    assert outer.sample.item.weight == 3.0


def test_a_plan_has_a_size_for_each_piece_and_no_other():
    with pytest.raises(TypeError, match=r"lacks sizes of \['step'\], and does not know \['stop'\]"):
        Work.plan(residual=2, stop=3)


def misspelt(memory):
    record = Sample(pointer(memory))
    return record.stifness


def mistaken_write(memory):
    record = Sample(pointer(memory))
    record.forces = 1.0


def misspelt_piece(offsets, memory):
    return Work(pointer(offsets), pointer(memory)).residuals[0]


@pytest.mark.parametrize("function", [misspelt, mistaken_write])
def test_a_field_that_is_not_declared_is_an_error(function):
    with pytest.raises(Exception, match=r"stifness|forces") as raised:
        jit(function)(Sample.new().as_ints)
    assert "AttributeError" in raised.typename or "TypingError" in raised.typename


def test_a_piece_that_is_not_declared_is_an_error():
    with pytest.raises(Exception, match="residuals"):
        jit(misspelt_piece)(Work.plan(residual=1, step=1), np.zeros(2))


def test_python_is_told_the_nearest_field():
    for wrong in (lambda: Sample.new().stifness, lambda: Sample.new(stifness=1.0)):
        with pytest.raises(AttributeError, match="no field 'stifness'; did you mean 'stiffness'"):
            wrong()
    with pytest.raises(AttributeError, match="'stifness'"):
        Sample.new().stifness = 1.0


@pytest.mark.parametrize(
    ("value", "said"),
    [(np.zeros(3, np.int64), "must be f8"), (np.zeros((2, 2)), "contiguous"), (np.zeros(6)[::2], "contiguous")],
)
def test_a_reference_is_to_a_contiguous_array_of_its_type(value, said):
    with pytest.raises(TypeError, match=said):
        Sample.new(numbers=value)


def test_a_record_keeps_what_it_refers_to():
    record = Sample.new()
    record.numbers = np.array([1.0, 2.0])
    record.item = Item.new(weight=3.0)
    assert list(record.numbers) == [1.0, 2.0] and record.item.weight == 3.0


def test_a_record_without_references_is_copied_and_pickled():
    record = Item.new(weight=2.5, count=3)
    for other in (copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        other.count = 4
        assert other.as_ints[1] == 4 and other.weight == 2.5 and record.count == 3
    with pytest.raises(TypeError, match="Sample refers to memory"):
        copy.copy(Sample.new(item=record))


def test_only_an_owner_refers_to_memory():
    with pytest.raises(TypeError, match="only an owner keeps"):
        Sample(np.zeros(Sample.size)).numbers = np.zeros(2)


@pytest.mark.skipif(not JIT_DISABLED, reason="compiled kernels do not check bounds")
def test_without_the_jit_a_record_must_be_within_its_array():
    with pytest.raises(IndexError, match="Sample 1 has 9 words"):
        change(np.zeros(2 * Sample.size - 1), 1, 0.0)


def test_wrong_declarations_are_refused():
    with pytest.raises(TypeError, match="follows a field of open size"):
        type(Table)("Bad", (Table,), {"__module__": __name__, "__annotations__": {"a": Int[...], "b": Int}})
    with pytest.raises(TypeError, match="must be Int, Float"):
        type(Table)("Bad", (Table,), {"__module__": __name__, "__annotations__": {"a": int}})
    with pytest.raises(TypeError, match="number of records must be open"):
        Item[3]
    with pytest.raises(TypeError, match="another attribute 'kind'"):
        type(Table)("Bad", (Sample,), {"__module__": __name__, "__annotations__": {"kind": Int}})


def test_fields_are_described_with_their_comments():
    assert "| `stiffness` | Float | 1 | [N/m] |" in describe(Sample)
    assert "| `speed` | Float | 9 | [m/s] |" in describe(Longer) and "`kind`" in describe(Longer)
    assert "| `residual` | shape (rows,) |" in describe(Work)


def test_fields_are_read_at_once_as_numbers_of_python():
    seen = Plain.read(np.array([-3, 5, 7]))
    assert seen == (-3, 5) and seen.first == -3 and seen.second == 5 and type(seen.first) is int
    assert Numbers.read(Numbers.new(low=0.5, high=np.float64(2.0)).as_floats) == (0.5, 2.0)
    with pytest.raises(AttributeError, match="secnd"):
        _ = seen.secnd


def test_several_fields_are_written_at_once_as_one_by_one():
    places, force = np.arange(4), (1.0, 2.0, 3.0)
    values = {"kind": 3, "stiffness": 2.5, "force": force, "places": places, "item": Item.new(weight=2.0), "solver": 9}
    one, several, made = Sample.new(), Sample.new(), Sample.new(**values)
    for name, value in values.items():
        setattr(one, name, value)
    several.write(**values)
    assert one.as_ints.tobytes() == several.as_ints.tobytes() == made.as_ints.tobytes()
    assert several.places is places and several.item.weight == 2.0
    with pytest.raises(AttributeError, match="no field 'stifness'; did you mean 'stiffness'"):
        several.write(stifness=1.0)
    with pytest.raises(TypeError, match="must be i8"):
        several.write(places=np.zeros(3))


class Numbers(Table):
    low: Float
    high: Float


class Plain(Table):
    first: Int
    second: Int
