/* The index of a shard. In memory it is what the file holds: a head, the samples, the text; little-endian.
   Files with one name but for the suffix belong together when they follow each other, as WebDataset has it. */
#include "data/tar_index.h"

#include "base/text.h"
#include "base/vec.h"
#include "data/scan.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LABEL = 4096, MAX_CLASSES_BYTES = 1 << 26 };

struct head {
    int64_t size, mtime;
    uint64_t n, n_text, classes;
    struct cvy_others others;
};

struct walk {
    const struct cvy_tar_source *source;
    CVY_VEC(struct cvy_tar_sample) samples;
    struct cvy_text text;
    uint32_t classes;
    struct cvy_others others;
    size_t first;              /* sample of the group of files that is being read */
    char group[CVY_TAR_NAME];  /* its name without suffix */
    uint32_t said, last_label; /* places: the group's .cls, 0 for none; the label that was added last */
};

/* ---- texts --------------------------------------------------------------------------------------- */

static cvy_status add_text(struct walk *walk, const char *piece, size_t n, uint32_t *out) {
    *out = (uint32_t)walk->text.n;
    if (walk->text.n + n >= UINT32_MAX)
        return CVY_FAIL(CVY_ERR_DATA, "more than 4 GB of names");
    cvy_text_append(&walk->text, piece, n);
    cvy_text_append(&walk->text, "", 1);
    return walk->text.status;
}

/* Neighbours mostly share their label. */
static cvy_status add_label(struct walk *walk, const char *label, size_t n, uint32_t *out) {
    const char *last = walk->text.data + walk->last_label;
    if (strlen(last) != n || memcmp(last, label, n) != 0)
        CVY_TRY(add_text(walk, label, n, &walk->last_label));
    *out = walk->last_label;
    return CVY_OK;
}

/* The bytes of a small member; blanks at the ends are taken away. */
static cvy_status read_text(const struct walk *walk, const struct cvy_tar *tar, int64_t max, char **out) {
    char *text;
    if (tar->size > max)
        return CVY_FAIL(CVY_ERR_DATA, "%s: has %lld bytes, more than a label may have", tar->name,
                        (long long)tar->size);
    CVY_TRY(cvy_alloc_items((size_t)tar->size + 1, 1, (void **)&text));
    cvy_status status = walk->source->read(walk->source->context, tar->offset, text, (size_t)tar->size);
    size_t n = (size_t)tar->size;
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        text[--n] = '\0';
    size_t skip = strspn(text, " \t\r\n");
    memmove(text, text + skip, strlen(text + skip) + 1);
    if (status == CVY_OK && !cvy_is_utf8(text))
        status = CVY_FAIL(CVY_ERR_DATA, "%s: is not UTF-8", tar->name);
    if (status == CVY_OK)
        *out = text;
    else
        free(text);
    return status;
}

/* ---- members ------------------------------------------------------------------------------------- */

/* The .cls may follow its image. */
static void end_group(struct walk *walk) {
    for (size_t i = walk->first; walk->said && i < walk->samples.n; i++) {
        walk->samples.data[i].label = walk->said;
        walk->samples.data[i].is_said = 1;
    }
    walk->first = walk->samples.n;
    walk->said = 0;
}

static cvy_status add_image(struct walk *walk, const struct cvy_tar *tar, const char *base) {
    struct cvy_tar_sample sample = {.offset = tar->offset, .size = (uint32_t)tar->size};
    const char *end = base > tar->name ? base - 1 : base, *folder = end;
    if (tar->size > UINT32_MAX)
        return CVY_FAIL(CVY_ERR_DATA, "%s: an image of more than 4 GB", tar->name);
    while (folder > tar->name && folder[-1] != '/')
        folder--;
    CVY_TRY(add_text(walk, tar->name, strlen(tar->name), &sample.name));
    CVY_TRY(add_label(walk, folder, (size_t)(end - folder), &sample.label));
    if (!cvy_is_utf8(walk->text.data + sample.label))
        return CVY_FAIL(CVY_ERR_DATA, "%s: the name of its folder is not UTF-8", tar->name);
    CVY_TRY(cvy_vec_push(&walk->samples, sample));
    return CVY_OK;
}

static cvy_status add_said(struct walk *walk, const struct cvy_tar *tar) {
    char *label;
    CVY_TRY(read_text(walk, tar, MAX_LABEL, &label));
    cvy_status status = *label ? add_label(walk, label, strlen(label), &walk->said)
                               : CVY_FAIL(CVY_ERR_DATA, "%s: holds no label", tar->name);
    free(label);
    return status;
}

static cvy_status add_classes(struct walk *walk, const struct cvy_tar *tar) {
    char *list;
    CVY_TRY(read_text(walk, tar, MAX_CLASSES_BYTES, &list));
    cvy_status status = add_text(walk, list, strlen(list), &walk->classes);
    free(list);
    return status;
}

static cvy_status add_member(struct walk *walk, const struct cvy_tar *tar) {
    const char *slash = strrchr(tar->name, '/'), *base = slash ? slash + 1 : tar->name;
    const char *dot = strrchr(base, '.');
    if (!tar->is_file)
        return CVY_OK;
    if (strcmp(tar->name, CVY_TAR_CLASSES) == 0)
        return add_classes(walk, tar);
    if (!dot || base[0] == '.')
        return CVY_OK;
    size_t n = (size_t)(dot - tar->name);
    if (strlen(walk->group) != n || memcmp(walk->group, tar->name, n) != 0) {
        end_group(walk);
        memcpy(walk->group, tar->name, n);
        walk->group[n] = '\0';
    }
    if (strcmp(dot, ".cls") == 0)
        return add_said(walk, tar);
    cvy_others_count(&walk->others, base);
    return cvy_is_image_name(base) ? add_image(walk, tar, base) : CVY_OK;
}

static cvy_status walk_members(struct walk *walk, struct cvy_tar *tar) {
    uint32_t empty;
    CVY_TRY(add_text(walk, "", 0, &empty)); /* place 0 */
    cvy_tar_begin(tar, walk->source);
    for (;;) {
        cvy_status status = cvy_tar_next(tar);
        if (status == CVY_END)
            break;
        CVY_TRY(status);
        CVY_TRY(add_member(walk, tar));
    }
    end_group(walk);
    return CVY_OK;
}

/* ---- the index ----------------------------------------------------------------------------------- */

bool cvy_tar_index_parse(const char *bytes, size_t n_bytes, struct cvy_tar_index *out) {
    struct head head;
    if (n_bytes < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    size_t rest = n_bytes - sizeof head;
    if (head.n > rest / sizeof *out->samples || head.n_text != rest - head.n * sizeof *out->samples ||
        head.n_text == 0 || head.classes >= head.n_text || head.size < 0 || bytes[n_bytes - 1] != '\0')
        return false;
    const struct cvy_tar_sample *samples = (const void *)(bytes + sizeof head);
    const char *text = bytes + n_bytes - head.n_text;
    for (size_t i = 0; i < head.n; i++) {
        const struct cvy_tar_sample *s = &samples[i];
        if (s->offset < 0 || s->offset > head.size || s->size > head.size - s->offset ||
            s->name >= head.n_text || s->label >= head.n_text || s->is_said > 1)
            return false;
    }
    *out = (struct cvy_tar_index){.size = head.size,
                                  .mtime = head.mtime,
                                  .n = head.n,
                                  .n_text = head.n_text,
                                  .samples = samples,
                                  .text = text,
                                  .classes = text + head.classes,
                                  .others = head.others,
                                  .n_bytes = n_bytes};
    return true;
}

cvy_status cvy_tar_index_scan(const struct cvy_tar_source *source, int64_t mtime, struct cvy_tar_index *out) {
    struct walk *walk = NULL;
    struct cvy_tar *tar = NULL;
    char *bytes = NULL;
    cvy_status status;
    CVY_TRY_OUT(CVY_ALLOC(walk, 1));
    CVY_TRY_OUT(CVY_ALLOC(tar, 1));
    walk->source = source;
    CVY_TRY_OUT(walk_members(walk, tar));
    const struct head head = {source->size, mtime,         walk->samples.n,
                              walk->text.n, walk->classes, walk->others};
    size_t n_samples = walk->samples.n * sizeof *walk->samples.data;
    size_t n_bytes = sizeof head + n_samples + walk->text.n;
    CVY_TRY_OUT(cvy_alloc_items(n_bytes, 1, (void **)&bytes));
    memcpy(bytes, &head, sizeof head);
    if (n_samples)
        memcpy(bytes + sizeof head, walk->samples.data, n_samples);
    memcpy(bytes + sizeof head + n_samples, walk->text.data, walk->text.n);
    (void)cvy_tar_index_parse(bytes, n_bytes, out);
    out->bytes = bytes;
out:
    if (walk) {
        cvy_vec_free(&walk->samples);
        cvy_text_free(&walk->text);
    }
    free(walk);
    free(tar);
    return status;
}

void cvy_tar_index_free(struct cvy_tar_index *index) {
    free(index->bytes);
    *index = (struct cvy_tar_index){0};
}
