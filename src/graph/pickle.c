/* See pickle.h. A pickle is a program of a stack machine with a memo; the opcodes and their arguments are those that
   Python's pickletools documents, as far as protocols 2 to 5 use them for plain data. */
#include "graph/pickle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK UINT32_MAX

struct machine {
    struct cvy_pickle *pickle;
    const char *const *names;
    const unsigned char *begin, *at, *end;
    uint32_t *stack, *memo; /* of values; memo: plus 1, 0 is none */
    size_t n_stack, n_memo, size;
    bool is_done;
};

static cvy_status bad(const struct machine *m, const char *what) {
    return CVY_FAIL(CVY_ERR_DATA, "its pickle is not right at byte %zu: %s", (size_t)(m->at - m->begin),
                    what);
}

/* ---- the stream, the stack -------------------------------------------------------------------------------- */

static cvy_status take(struct machine *m, uint64_t n, const unsigned char **out) {
    if (n > (size_t)(m->end - m->at))
        return bad(m, "it ends too early");
    *out = m->at;
    m->at += n;
    return CVY_OK;
}

static cvy_status take_number(struct machine *m, int n_bytes, uint64_t *out) {
    const unsigned char *at;
    CVY_TRY(take(m, (uint64_t)n_bytes, &at));
    *out = 0;
    for (int i = n_bytes - 1; i >= 0; i--)
        *out = *out << 8 | at[i];
    return CVY_OK;
}

static cvy_status push(struct machine *m, struct cvy_pickle_value value) {
    struct cvy_pickle *p = m->pickle;
    p->values[p->n_values] = value;
    m->stack[m->n_stack++] = (uint32_t)p->n_values++;
    return CVY_OK;
}

static cvy_status pop(struct machine *m, uint32_t *out) {
    if (m->n_stack == 0 || m->stack[m->n_stack - 1] == MARK)
        return bad(m, "a value is missing");
    *out = m->stack[--m->n_stack];
    return CVY_OK;
}

/* Are there n values on top? */
static cvy_status check_top(const struct machine *m, size_t n) {
    for (size_t i = 1; i <= n; i++) {
        if (i > m->n_stack || m->stack[m->n_stack - i] == MARK)
            return bad(m, "a value is missing");
    }
    return CVY_OK;
}

static void append(struct machine *m, struct cvy_pickle_value *to, uint32_t item) {
    struct cvy_pickle *p = m->pickle;
    uint32_t link = (uint32_t)p->n_links++;
    p->links[link] = (struct cvy_pickle_link){.value = item};
    if (to->last)
        p->links[to->last].next = link;
    else
        to->first = link;
    to->last = link;
    to->n_items++;
}

/* Where the values above the last mark begin; the mark is at one less. */
static cvy_status find_mark(const struct machine *m, size_t *out) {
    size_t i = m->n_stack;
    while (i > 0 && m->stack[i - 1] != MARK)
        i--;
    *out = i;
    return i > 0 ? CVY_OK : bad(m, "a mark is missing");
}

/* ---- plain values ------------------------------------------------------------------------------------------- */

static cvy_status do_proto(struct machine *m) {
    uint64_t version;
    CVY_TRY(take_number(m, 1, &version));
    return version >= 2 && version <= 5 ? CVY_OK : bad(m, "its protocol is not one of 2 to 5");
}
static cvy_status do_frame(struct machine *m) {
    uint64_t n;
    return take_number(m, 8, &n);
}
static cvy_status do_stop(struct machine *m) {
    m->is_done = true;
    return CVY_OK;
}
static cvy_status do_mark(struct machine *m) {
    m->stack[m->n_stack++] = MARK;
    return CVY_OK;
}
static cvy_status do_none(struct machine *m) {
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_NONE});
}
static cvy_status do_true(struct machine *m) {
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_BOOL, .integer = 1});
}
static cvy_status do_false(struct machine *m) {
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_BOOL});
}
static cvy_status push_number(struct machine *m, int n_bytes) {
    uint64_t value;
    CVY_TRY(take_number(m, n_bytes, &value));
    int64_t integer = n_bytes == 4 ? (int64_t)(int32_t)(uint32_t)value : (int64_t)value;
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_INT, .integer = integer});
}
static cvy_status do_int(struct machine *m) { return push_number(m, 4); }
static cvy_status do_int1(struct machine *m) { return push_number(m, 1); }
static cvy_status do_int2(struct machine *m) { return push_number(m, 2); }

/* Little-endian, of any length, with the sign in the last byte. */
static cvy_status do_long(struct machine *m) {
    uint64_t n;
    const unsigned char *at;
    CVY_TRY(take_number(m, 1, &n));
    CVY_TRY(take(m, n, &at));
    bool is_negative = n > 0 && at[n - 1] & 0x80;
    if (n > 8)
        return bad(m, "a number has more than 64 bits");
    uint64_t value = is_negative ? UINT64_MAX : 0;
    for (uint64_t i = n; i > 0; i--)
        value = value << 8 | at[i - 1];
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_INT, .integer = (int64_t)value});
}
static cvy_status do_float(struct machine *m) {
    const unsigned char *at;
    CVY_TRY(take(m, 8, &at));
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_FLOAT});
}

static cvy_status push_text(struct machine *m, int length_bytes) {
    uint64_t n;
    const unsigned char *at;
    CVY_TRY(take_number(m, length_bytes, &n));
    CVY_TRY(take(m, n, &at));
    return push(m, (struct cvy_pickle_value){
                       .kind = CVY_PICKLE_TEXT, .text = (const char *)at, .n_text = (uint32_t)n});
}
static cvy_status do_text1(struct machine *m) { return push_text(m, 1); }
static cvy_status do_text4(struct machine *m) { return push_text(m, 4); }
static cvy_status do_text8(struct machine *m) { return push_text(m, 8); }

/* ---- the memo ------------------------------------------------------------------------------------------------- */

static cvy_status put(struct machine *m, uint64_t place) {
    CVY_TRY(check_top(m, 1));
    if (place >= m->size)
        return bad(m, "its memo has a number that is larger than the pickle");
    m->memo[place] = m->stack[m->n_stack - 1] + 1;
    return CVY_OK;
}
static cvy_status put_wide(struct machine *m, int n_bytes) {
    uint64_t place;
    CVY_TRY(take_number(m, n_bytes, &place));
    return put(m, place);
}
static cvy_status do_put1(struct machine *m) { return put_wide(m, 1); }
static cvy_status do_put4(struct machine *m) { return put_wide(m, 4); }
static cvy_status do_memoize(struct machine *m) { return put(m, m->n_memo++); }

static cvy_status get(struct machine *m, int n_bytes) {
    uint64_t place;
    CVY_TRY(take_number(m, n_bytes, &place));
    if (place >= m->size || m->memo[place] == 0)
        return bad(m, "it takes what it has not kept");
    m->stack[m->n_stack++] = m->memo[place] - 1;
    return CVY_OK;
}
static cvy_status do_get1(struct machine *m) { return get(m, 1); }
static cvy_status do_get4(struct machine *m) { return get(m, 4); }

/* ---- containers ----------------------------------------------------------------------------------------------- */

static cvy_status do_empty_tuple(struct machine *m) {
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_TUPLE});
}
static cvy_status do_empty_list(struct machine *m) {
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_LIST});
}
static cvy_status do_empty_dict(struct machine *m) {
    return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_DICT});
}

/* The values from `from` on become a tuple in the place of `to`. */
static cvy_status make_tuple(struct machine *m, size_t from, size_t to) {
    struct cvy_pickle_value tuple = {.kind = CVY_PICKLE_TUPLE};
    for (size_t i = from; i < m->n_stack; i++)
        append(m, &tuple, m->stack[i]);
    m->n_stack = to;
    return push(m, tuple);
}
static cvy_status do_tuple(struct machine *m) {
    size_t from;
    CVY_TRY(find_mark(m, &from));
    return make_tuple(m, from, from - 1);
}
static cvy_status short_tuple(struct machine *m, size_t n) {
    CVY_TRY(check_top(m, n));
    return make_tuple(m, m->n_stack - n, m->n_stack - n);
}
static cvy_status do_tuple1(struct machine *m) { return short_tuple(m, 1); }
static cvy_status do_tuple2(struct machine *m) { return short_tuple(m, 2); }
static cvy_status do_tuple3(struct machine *m) { return short_tuple(m, 3); }

/* The values from `from` on go into the container below `to`. */
static cvy_status add_items(struct machine *m, enum cvy_pickle_kind kind, size_t from, size_t to) {
    size_t n = m->n_stack - from;
    uint32_t below = to > 0 ? m->stack[to - 1] : MARK;
    if (below == MARK || m->pickle->values[below].kind != kind || (kind == CVY_PICKLE_DICT && n % 2))
        return bad(m, "items have no container of their kind");
    for (size_t i = from; i < m->n_stack; i++)
        append(m, &m->pickle->values[below], m->stack[i]);
    m->n_stack = to;
    return CVY_OK;
}
static cvy_status add_marked(struct machine *m, enum cvy_pickle_kind kind) {
    size_t from;
    CVY_TRY(find_mark(m, &from));
    return add_items(m, kind, from, from - 1);
}
static cvy_status add_few(struct machine *m, enum cvy_pickle_kind kind, size_t n) {
    CVY_TRY(check_top(m, n));
    return add_items(m, kind, m->n_stack - n, m->n_stack - n);
}
static cvy_status do_setitems(struct machine *m) { return add_marked(m, CVY_PICKLE_DICT); }
static cvy_status do_setitem(struct machine *m) { return add_few(m, CVY_PICKLE_DICT, 2); }
static cvy_status do_appends(struct machine *m) { return add_marked(m, CVY_PICKLE_LIST); }
static cvy_status do_append(struct machine *m) { return add_few(m, CVY_PICKLE_LIST, 1); }

/* ---- globals and calls ---------------------------------------------------------------------------------------- */

static bool is_name(const char *name, const char *module, size_t n_module, const char *rest, size_t n_rest) {
    return strlen(name) == n_module + 1 + n_rest && memcmp(name, module, n_module) == 0 &&
           name[n_module] == '.' && memcmp(name + n_module + 1, rest, n_rest) == 0;
}

static cvy_status push_global(struct machine *m, const char *module, size_t n_module, const char *name,
                              size_t n_name) {
    for (int64_t i = 0; m->names[i]; i++) {
        if (is_name(m->names[i], module, n_module, name, n_name))
            return push(m, (struct cvy_pickle_value){.kind = CVY_PICKLE_GLOBAL, .integer = i});
    }
    char text[100];
    snprintf(text, sizeof text, "%.*s.%.*s", (int)(n_module < 60 ? n_module : 60), module,
             (int)(n_name < 60 ? n_name : 60), name);
    for (char *c = text; *c; c++) /* a hostile name does not reach the terminal */
        *c = *c > ' ' && *c < 0x7f ? *c : '?';
    return CVY_FAIL(CVY_ERR_DATA,
                    "it needs %s, which is more than tensors: not read, since pickles can run code; save the "
                    "model's state_dict() alone",
                    text);
}

static cvy_status take_line(struct machine *m, const char **out, size_t *n) {
    const unsigned char *newline = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!newline)
        return bad(m, "a name does not end");
    *out = (const char *)m->at;
    *n = (size_t)(newline - m->at);
    m->at = newline + 1;
    return CVY_OK;
}

static cvy_status do_global(struct machine *m) {
    const char *module, *name;
    size_t n_module, n_name;
    CVY_TRY(take_line(m, &module, &n_module));
    CVY_TRY(take_line(m, &name, &n_name));
    return push_global(m, module, n_module, name, n_name);
}

static cvy_status do_stack_global(struct machine *m) {
    uint32_t name, module;
    CVY_TRY(pop(m, &name));
    CVY_TRY(pop(m, &module));
    const struct cvy_pickle_value *a = &m->pickle->values[module], *b = &m->pickle->values[name];
    if (a->kind != CVY_PICKLE_TEXT || b->kind != CVY_PICKLE_TEXT)
        return bad(m, "a global's name is no text");
    return push_global(m, a->text, a->n_text, b->text, b->n_text);
}

static cvy_status do_call(struct machine *m) {
    uint32_t arguments, callee;
    CVY_TRY(pop(m, &arguments));
    CVY_TRY(pop(m, &callee));
    const struct cvy_pickle_value *a = &m->pickle->values[arguments], *c = &m->pickle->values[callee];
    if (a->kind != CVY_PICKLE_TUPLE || c->kind != CVY_PICKLE_GLOBAL)
        return bad(m, "a call is not one of a global with a tuple");
    if (c->integer == 0 && a->n_items == 0)
        return do_empty_dict(m);
    struct cvy_pickle_value call = *a;
    call.kind = CVY_PICKLE_CALL;
    call.integer = c->integer;
    return push(m, call);
}

/* Attributes of an object: of an OrderedDict its _metadata. They are left out. */
static cvy_status do_build(struct machine *m) {
    uint32_t attributes;
    CVY_TRY(pop(m, &attributes));
    CVY_TRY(check_top(m, 1));
    const struct cvy_pickle_value *object = &m->pickle->values[m->stack[m->n_stack - 1]];
    return object->kind == CVY_PICKLE_DICT || object->kind == CVY_PICKLE_CALL
               ? CVY_OK
               : bad(m, "no object has attributes");
}

static cvy_status do_outer(struct machine *m) {
    uint32_t which;
    CVY_TRY(pop(m, &which));
    struct cvy_pickle_value outer = {.kind = CVY_PICKLE_OUTER};
    append(m, &outer, which);
    return push(m, outer);
}

/* ---- the machine ---------------------------------------------------------------------------------------------- */

static cvy_status (*const opcodes[256])(struct machine *) = {
    [0x80] = do_proto,     [0x95] = do_frame,   ['.'] = do_stop,          ['('] = do_mark,
    ['N'] = do_none,       [0x88] = do_true,    [0x89] = do_false,        ['J'] = do_int,
    ['K'] = do_int1,       ['M'] = do_int2,     [0x8a] = do_long,         ['G'] = do_float,
    ['U'] = do_text1,      [0x8c] = do_text1,   ['T'] = do_text4,         ['X'] = do_text4,
    [0x8d] = do_text8,     ['q'] = do_put1,     ['r'] = do_put4,          [0x94] = do_memoize,
    ['h'] = do_get1,       ['j'] = do_get4,     [')'] = do_empty_tuple,   [']'] = do_empty_list,
    ['}'] = do_empty_dict, ['t'] = do_tuple,    [0x85] = do_tuple1,       [0x86] = do_tuple2,
    [0x87] = do_tuple3,    ['u'] = do_setitems, ['s'] = do_setitem,       ['e'] = do_appends,
    ['a'] = do_append,     ['c'] = do_global,   [0x93] = do_stack_global, ['R'] = do_call,
    [0x81] = do_call,      ['b'] = do_build,    ['Q'] = do_outer,
};

static cvy_status run(struct machine *m) {
    while (!m->is_done) {
        if (m->at == m->end)
            return bad(m, "it ends too early");
        unsigned char code = *m->at++;
        if (!opcodes[code])
            return CVY_FAIL(CVY_ERR_DATA,
                            "its pickle has the opcode 0x%02x at byte %zu, which tensors do not need", code,
                            (size_t)(m->at - m->begin) - 1);
        CVY_TRY(opcodes[code](m));
    }
    uint32_t root;
    CVY_TRY(pop(m, &root));
    m->pickle->root = &m->pickle->values[root];
    m->pickle->n_bytes = (size_t)(m->at - m->begin);
    return CVY_OK;
}

cvy_status cvy_pickle_read(const unsigned char *bytes, size_t n_bytes, const char *const *names,
                           struct cvy_pickle *out) {
    size_t size = n_bytes < CVY_PICKLE_MAX_BYTES ? n_bytes : CVY_PICKLE_MAX_BYTES;
    struct machine m = {
        .pickle = out, .names = names, .begin = bytes, .at = bytes, .end = bytes + size, .size = size + 1};
    cvy_status status;
    *out = (struct cvy_pickle){.n_links = 1};
    CVY_TRY_OUT(CVY_ALLOC(m.stack, m.size));
    CVY_TRY_OUT(CVY_ALLOC(m.memo, m.size));
    CVY_TRY_OUT(CVY_ALLOC(out->values, m.size));
    CVY_TRY_OUT(CVY_ALLOC(out->links, m.size + 1));
    CVY_TRY_OUT(run(&m));
out:
    free(m.stack);
    free(m.memo);
    return status;
}

void cvy_pickle_free(struct cvy_pickle *pickle) {
    free(pickle->values);
    free(pickle->links);
    *pickle = (struct cvy_pickle){0};
}

const struct cvy_pickle_value *cvy_pickle_item(const struct cvy_pickle *pickle,
                                               const struct cvy_pickle_value *value, uint32_t i) {
    uint32_t link = value->first;
    while (link && i-- > 0)
        link = pickle->links[link].next;
    return link ? &pickle->values[pickle->links[link].value] : NULL;
}

bool cvy_pickle_is_text(const struct cvy_pickle_value *value, const char *text) {
    return value && value->kind == CVY_PICKLE_TEXT && value->n_text == strlen(text) &&
           memcmp(value->text, text, value->n_text) == 0;
}
