/* Python's pickle as data: a stream of it becomes a tree of values. Nothing is ever called: a call is only noted, as
   the name of what Python would call and its arguments, and only names that the caller lists are accepted. Local.

   Bounds: a byte of the stream makes at most one value, one entry of the stack and one link, so all tables have the
   stream's length, and that is at most CVY_PICKLE_MAX_BYTES. Values may be shared, and may contain themselves. */
#ifndef CVY_GRAPH_PICKLE_H
#define CVY_GRAPH_PICKLE_H

#include "base/mem.h"

enum { CVY_PICKLE_MAX_BYTES = 1 << 22 };

enum cvy_pickle_kind {
    CVY_PICKLE_NONE,
    CVY_PICKLE_BOOL,   /* integer */
    CVY_PICKLE_INT,    /* integer */
    CVY_PICKLE_FLOAT,  /* its value is not kept */
    CVY_PICKLE_TEXT,   /* text, n_text */
    CVY_PICKLE_TUPLE,  /* items */
    CVY_PICKLE_LIST,   /* items */
    CVY_PICKLE_DICT,   /* items: key, value, key, value, … */
    CVY_PICKLE_GLOBAL, /* integer: its place in the list of names */
    CVY_PICKLE_CALL,   /* integer: the same of what is called; items: the arguments */
    CVY_PICKLE_OUTER,  /* a thing that lies outside the stream; items: one, which says which */
};

struct cvy_pickle_value {
    enum cvy_pickle_kind kind;
    uint32_t first, last; /* links; 0: none */
    uint32_t n_items;
    uint32_t n_text;
    int64_t integer;
    const char *text; /* in the stream, UTF-8, without a NUL at its end */
};

struct cvy_pickle_link {
    uint32_t value, next; /* next: 0 at the end */
};

struct cvy_pickle {
    struct cvy_pickle_value *values;
    struct cvy_pickle_link *links; /* the first stands for none */
    size_t n_values, n_links;
    const struct cvy_pickle_value *root;
    size_t n_bytes; /* of the stream that were read */
};

/* `names` ("collections.OrderedDict"), ended by NULL, are the globals that may occur; the first is a dict's.
   CVY_ERR_DATA without the file's name. The stream outlives *out, which cvy_pickle_free releases, also after a
   failure. */
cvy_status cvy_pickle_read(const unsigned char *bytes, size_t n_bytes, const char *const *names,
                           struct cvy_pickle *out);
void cvy_pickle_free(struct cvy_pickle *pickle);

/* Item i, or NULL. */
const struct cvy_pickle_value *cvy_pickle_item(const struct cvy_pickle *pickle,
                                               const struct cvy_pickle_value *value, uint32_t i);
/* Is it this text? */
bool cvy_pickle_is_text(const struct cvy_pickle_value *value, const char *text);

#endif
