/* Calls kernels from Python: an extension module of the stable ABI (Python 3.11 and later), linked with the object
 * code of all kernels.  kernels/link.py generates the list of their addresses, cardan_functions.
 *
 * A kernel that Python calls is a function of one pointer, to words of 8 bytes: 0 to 7 receive the result, 8 is that of
 * the exception, and the arguments follow from 9 on.  A number is one word.  An array has 5 + 2 n words: two of the
 * owner (0), number of items, size of an item, address, shape, strides.  Evaluators and primitives have C signatures;
 * Python needs only their addresses.
 *
 * Every argument is checked before a kernel runs: its type, and of an array the type of its numbers, dimensions, order,
 * alignment, and whether it may be written.  What does not fit is a TypeError or an OverflowError.
 *
 * A kernel may call functions of Python by address.  Exceptions do not pass a kernel: such a function keeps its exception
 * here (keep), and it is raised when the kernel that this thread has called returns. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef int32_t (*kernel_function)(int64_t *);
extern void *const cardan_functions[];
extern const int cardan_count;

enum { FIRST = 9, MOST_ARGUMENTS = 24, MOST_DIMENSIONS = 3, MOST_RESULTS = 8 };
enum { MOST_WORDS = FIRST + MOST_ARGUMENTS * (5 + 2 * MOST_DIMENSIONS) };

/* Types of numbers in arrays: a letter of a signature, its name in NumPy, letters of the buffer protocol, bytes. */
static const struct { char letter; const char *name, *formats; int size; } NUMBERS[] = {
    {'d', "float64", "d", 8}, {'q', "int64", "lq", 8}, {'f', "float32", "f", 4},
    {'i', "int32", "il", 4},  {'I', "uint32", "IL", 4}, {'B', "uint8", "B", 1}, {'b', "bool", "?", 1},
};
enum { KINDS = sizeof NUMBERS / sizeof *NUMBERS };

static _Thread_local PyObject *kept; /* the first exception of functions that the kernel of this thread has called */

static PyTypeObject *ndarray;
static PyObject *dtypes[KINDS]; /* of NumPy, in the byte order of this machine */

typedef struct {
    char letter;      /* of a number: d, q, b; of an array: A */
    char kind;        /* of the numbers of an array, in NUMBERS */
    char dimensions;
    char contiguous;  /* in the order of C */
    char written;
} argument;

typedef struct {
    PyMethodDef method;
    kernel_function call;
    int count, results;
    char result[MOST_RESULTS + 1]; /* n: None; q, d, b: a number; several of these: a tuple */
    argument arguments[MOST_ARGUMENTS];
    char name[]; /* "cardan.module.function" */
} kernel;

/* The beginning of an array of NumPy 1 and 2: reading it takes a tenth of the time of the buffer protocol.  The layout
 * is checked when this module is loaded (has_fields); if it is another one, the buffer protocol is used. */
typedef struct {
    PyObject_HEAD
    char *data;
    int dimensions;
    Py_ssize_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
} array_fields;
enum { C_ORDER = 0x1, ALIGNED = 0x100, WRITEABLE = 0x400 };
static int has_fields;

static int is_of(const char *format, Py_ssize_t size, int kind) {
    if (!format) return 0;
    if (*format == '@' || *format == '=') format++;
    return *format && !format[1] && strchr(NUMBERS[kind].formats, *format) && size == NUMBERS[kind].size;
}

/* Words of an array at *place, which is moved behind them; 0 if it does not fit, -1 with an exception. */
static int put_array(PyObject *given, const argument *wanted, int64_t **place) {
    const Py_ssize_t *shape, *strides;
    Py_buffer buffer;
    int n = wanted->dimensions, is_buffer = 0, fits;
    char *data;
    int64_t *words = *place, items = 1;
    Py_ssize_t size = NUMBERS[(int)wanted->kind].size;
    if (Py_TYPE(given) != ndarray) return 0;
    const array_fields *array = (const array_fields *)given;
    if (has_fields && array->dtype == dtypes[(int)wanted->kind]) {
        data = array->data, shape = array->shape, strides = array->strides;
        fits = array->dimensions == n && array->flags & ALIGNED && (array->flags & WRITEABLE || !wanted->written)
            && (array->flags & C_ORDER || !wanted->contiguous);
    } else { /* an equal dtype may be another object, for example after pickling */
        if (PyObject_GetBuffer(given, &buffer, PyBUF_RECORDS_RO) < 0) {
            PyErr_Clear();
            return 0;
        }
        is_buffer = 1, data = buffer.buf, shape = buffer.shape, strides = buffer.strides;
        fits = buffer.ndim == n && is_of(buffer.format, buffer.itemsize, wanted->kind)
            && !(buffer.readonly && wanted->written) && (uintptr_t)data % size == 0;
        Py_ssize_t stride = size;
        for (int d = n; fits && d-- > 0; stride *= shape[d])
            fits = strides[d] % size == 0 && (!wanted->contiguous || shape[d] < 2 || strides[d] == stride);
    }
    if (fits) {
        words[0] = words[1] = 0, words[3] = size, words[4] = (int64_t)(intptr_t)data;
        for (int d = 0; d < n; d++) words[5 + d] = shape[d], words[5 + n + d] = strides[d], items *= shape[d];
        words[2] = items;
        *place = words + 5 + 2 * n;
    }
    if (is_buffer) PyBuffer_Release(&buffer); /* the caller holds the array until the kernel returns */
    return fits;
}

/* One word of a number; 0 if it does not fit, -1 with an exception. */
static int put_number(PyObject *given, char letter, int64_t *word) {
    double number;
    switch (letter) {
    case 'd':
        if (Py_TYPE(given) == ndarray) return 0;
        number = PyFloat_AsDouble(given);
        if (number == -1.0 && PyErr_Occurred()) {
            if (PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
            PyErr_Clear();
            return 0;
        }
        memcpy(word, &number, sizeof number);
        return 1;
    case 'q':
        if (PyLong_Check(given)) {
            *word = PyLong_AsLongLong(given);
        } else {
            if (Py_TYPE(given) == ndarray) return 0;
            PyObject *integer = PyNumber_Index(given);
            if (!integer) {
                PyErr_Clear();
                return 0;
            }
            *word = PyLong_AsLongLong(integer);
            Py_DECREF(integer);
        }
        return *word == -1 && PyErr_Occurred() ? -1 : 1;
    default: /* a condition: a bool of Python or of NumPy, or an integer */
        if (!PyBool_Check(given) && (PyFloat_Check(given) || Py_TYPE(given) == ndarray || !PyNumber_Check(given))) return 0;
        *word = PyObject_IsTrue(given);
        return *word < 0 ? -1 : 1;
    }
}

static PyObject *number(char letter, const int64_t *word) {
    double x;
    switch (letter) {
    case 'q': return PyLong_FromLongLong(*word);
    case 'd': memcpy(&x, word, sizeof x); return PyFloat_FromDouble(x);
    case 'b': return PyBool_FromLong(*(const char *)word != 0);
    default: Py_RETURN_NONE;
    }
}

static PyObject *refuse(const kernel *k, Py_ssize_t place, PyObject *given) {
    const argument *wanted = k->arguments + place;
    PyObject *what = PyObject_GetAttrString(given, "dtype"), *shape = what ? PyObject_GetAttrString(given, "shape") : NULL;
    PyErr_Clear();
    PyObject *text = shape ? PyUnicode_FromFormat("an array of %S with shape %S", what, shape)
                           : PyUnicode_FromFormat("%.100R", given);
    Py_XDECREF(what);
    Py_XDECREF(shape);
    if (!text) return NULL;
    if (wanted->letter == 'A')
        PyErr_Format(PyExc_TypeError, "%s: argument %zd is %U; it must be an aligned%s%s array of %s with %d dimension(s)",
                     k->name, place + 1, text, wanted->contiguous ? ", contiguous" : "", wanted->written ? ", writable" : "",
                     NUMBERS[(int)wanted->kind].name, wanted->dimensions);
    else
        PyErr_Format(PyExc_TypeError, "%s: argument %zd is %U; it must be %s", k->name, place + 1, text,
                     wanted->letter == 'd' ? "a number" : wanted->letter == 'q' ? "an integer" : "a bool");
    Py_DECREF(text);
    return NULL;
}

static PyObject *call(PyObject *self, PyObject *const *given, Py_ssize_t count) {
    const kernel *k = PyCapsule_GetPointer(self, NULL);
    int64_t words[MOST_WORDS], *place = words + FIRST;
    int32_t status;
    if (!k) return NULL;
    if (count != k->count) return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, not %zd", k->name, k->count, count);
    for (Py_ssize_t n = 0; n < count; n++) {
        const argument *wanted = k->arguments + n;
        int fits = wanted->letter == 'A' ? put_array(given[n], wanted, &place) : put_number(given[n], wanted->letter, place++);
        if (fits < 0) return NULL;
        if (!fits) return refuse(k, n, given[n]);
    }
    memset(words, 0, FIRST * sizeof *words);
    Py_BEGIN_ALLOW_THREADS
    status = k->call(words);
    Py_END_ALLOW_THREADS
    if (kept) {
        PyObject *error = kept;
        kept = NULL;
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
        return NULL;
    }
    if (status != 0 && status != -2)
        return PyErr_Format(PyExc_RuntimeError, "%s failed: its machine code returned the status %d", k->name, (int)status);
    if (k->results == 1) return number(k->result[0], words);
    PyObject *made = PyTuple_New(k->results);
    for (int n = 0; made && n < k->results; n++) {
        PyObject *one = number(k->result[n], words + n);
        if (!one || PyTuple_SetItem(made, n, one) < 0) Py_CLEAR(made);
    }
    return made;
}

/* The number of a letter in NUMBERS, or -1. */
static int kind_of(char letter) {
    for (int n = 0; n < KINDS; n++)
        if (NUMBERS[n].letter == letter) return n;
    return -1;
}

/* Arguments such as "d q d1C q2c", in lower case arrays that may be read-only; whether they are understood. */
static int read_arguments(kernel *k, const char *text) {
    for (; *text; k->count++) {
        if (k->count == MOST_ARGUMENTS) return 0;
        argument *a = k->arguments + k->count;
        char letter = *text++;
        if (!*text || *text == ' ') {
            if (!strchr("dqb", letter)) return 0;
            a->letter = letter;
        } else {
            int kind = kind_of(letter), n = *text++ - '0';
            if (kind < 0 || n < 0 || n > MOST_DIMENSIONS || !*text || !strchr("CAca", *text)) return 0;
            a->letter = 'A', a->kind = (char)kind, a->dimensions = (char)n;
            a->contiguous = *text == 'C' || *text == 'c', a->written = *text == 'C' || *text == 'A';
            text++;
            if (*text && *text != ' ') return 0;
        }
        while (*text == ' ') text++;
    }
    return 1;
}

static int is_number(long number) {
    if (number >= 0 && number < cardan_count) return 1;
    PyErr_Format(PyExc_IndexError, "there is no kernel %ld; the numbers are 0 to %d", number, cardan_count - 1);
    return 0;
}

/* kernel(number, "module.function", "d q d1C", "n"): a function of Python, which lives as long as the process. */
static PyObject *make_kernel(PyObject *module, PyObject *given) {
    int number;
    const char *name, *arguments, *result;
    if (!PyArg_ParseTuple(given, "isss", &number, &name, &arguments, &result) || !is_number(number)) return NULL;
    kernel *k = PyMem_Calloc(1, sizeof *k + strlen(name) + 1);
    if (!k) return PyErr_NoMemory();
    strcpy(k->name, name);
    k->results = (int)strlen(result);
    if (!k->results || k->results > MOST_RESULTS || strspn(result, "nqdb") != (size_t)k->results || !read_arguments(k, arguments)) {
        PyErr_Format(PyExc_ValueError, "%s has a signature that is not known: %s -> %s", name, arguments, result);
        PyMem_Free(k);
        return NULL;
    }
    strcpy(k->result, result);
    k->call = (kernel_function)cardan_functions[number];
    const char *last = strrchr(k->name, '.');
    k->method = (PyMethodDef){last ? last + 1 : k->name, (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};
    PyObject *self = PyCapsule_New(k, NULL, NULL);
    if (!self) return NULL;
    PyObject *made = PyCFunction_NewEx(&k->method, self, NULL);
    Py_DECREF(self);
    return made;
}

/* address(number): that of an evaluator or a primitive. */
static PyObject *address(PyObject *module, PyObject *given) {
    long number = PyLong_AsLong(given);
    if (number == -1 && PyErr_Occurred()) return NULL;
    return is_number(number) ? PyLong_FromVoidPtr(cardan_functions[number]) : NULL;
}

/* Whether an array has the fields that its attributes tell; -1 with an exception. */
static int agrees(PyObject *array, PyObject *dtype, Py_ssize_t rows, Py_ssize_t step, int flags) {
    Py_buffer buffer;
    const array_fields *seen = (const array_fields *)array;
    if (PyObject_GetBuffer(array, &buffer, PyBUF_RECORDS_RO) < 0) return -1;
    int same = seen->data == (char *)buffer.buf && seen->dimensions == buffer.ndim && buffer.ndim == 2 && seen->dtype == dtype
        && (seen->flags & (C_ORDER | ALIGNED | WRITEABLE)) == flags;
    PyBuffer_Release(&buffer);
    return same && seen->shape[0] == rows && seen->shape[1] == 3 && seen->strides[0] == step && seen->strides[1] == 8;
}

/* Look at two arrays: has_fields ← whether the fields are where array_fields has them; -1 with an exception. */
static int look(PyObject *numpy) {
    PyObject *whole = PyObject_CallMethod(numpy, "zeros", "((ii)O)", 4, 3, dtypes[0]);
    PyObject *step = Py_BuildValue("i", 2), *slice = step ? PySlice_New(NULL, NULL, step) : NULL;
    PyObject *part = whole && slice ? PyObject_GetItem(whole, slice) : NULL;
    PyObject *done = part ? PyObject_CallMethod(part, "setflags", "O", Py_False) : NULL;
    int first = done ? agrees(whole, dtypes[0], 4, 24, C_ORDER | ALIGNED | WRITEABLE) : -1;
    int second = first > 0 ? agrees(part, dtypes[0], 2, 48, ALIGNED) : first;
    Py_XDECREF(whole); Py_XDECREF(step); Py_XDECREF(slice); Py_XDECREF(part); Py_XDECREF(done);
    has_fields = second > 0;
    return second < 0 ? -1 : 0;
}

static PyObject *keep(PyObject *module, PyObject *error) {
    if (!kept) {
        Py_INCREF(error);
        kept = error;
    }
    Py_RETURN_NONE;
}

static PyObject *is_kept(PyObject *module, PyObject *given) {
    return PyBool_FromLong(kept != NULL);
}

static PyObject *use_buffers(PyObject *module, PyObject *given) {
    has_fields = 0; /* for tests */
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"kernel", make_kernel, METH_VARARGS, "kernel(number, name, arguments, result): a function of Python"},
    {"address", address, METH_O, "address(number): that of an evaluator or a primitive"},
    {"keep", keep, METH_O, "keep(exception): raise it when the kernel that this thread has called returns"},
    {"is_kept", is_kept, METH_NOARGS, "Whether an exception is kept in this thread"},
    {"use_buffers", use_buffers, METH_NOARGS, "Read arrays by the buffer protocol, as where NumPy has another layout"},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "library", "Kernels as machine code.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_library(void) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    if (!numpy) return NULL;
    PyObject *type = PyObject_GetAttrString(numpy, "ndarray");
    if (type && !PyType_Check(type)) PyErr_SetString(PyExc_ImportError, "numpy.ndarray is not a type");
    ndarray = (PyTypeObject *)type;
    for (int n = 0; n < KINDS && !PyErr_Occurred(); n++)
        dtypes[n] = PyObject_CallMethod(numpy, "dtype", "s", NUMBERS[n].name);
    if (!PyErr_Occurred()) look(numpy);
    Py_DECREF(numpy);
    return PyErr_Occurred() ? NULL : PyModule_Create(&definition);
}
