/* What a weights file says about itself, in the safetensors' __metadata__: which network it is, how its images
   are prepared, what its classes are called, and what fixes the bits of a run that goes on from it. */
#ifndef CVY_ENGINE_CARD_H
#define CVY_ENGINE_CARD_H

#include "base/mem.h"
#include "engine/task.h"
#include "engine/tensors.h"

struct cvy_card {        /* texts belong to the pool */
    const char *model;   /* NULL: the file says nothing (it is not ours) */
    int64_t num_classes; /* outputs of the network */
    int64_t n_names;     /* classes of the data; at most num_classes */
    const char *const *names;
    int64_t input[3]; /* C,H,W */
    int64_t resize;   /* shorter side; 0: none */
    float mean[4], std[4];
    int64_t shards;  /* S */
    int64_t threads; /* T */
    const char *conv_algo;
    bool is_as_stored;   /* photographs were not turned as EXIF says */
    bool is_fast_reduce; /* trained with --fast-reduce: S and T alone do not fix the bits */
    struct cvy_pool pool;
};

/* Of an open task. Local. */
cvy_status cvy_card_make(const struct cvy_task *task, struct cvy_card *out);
/* Of a file; a file without our metadata gives an empty card. Local. */
cvy_status cvy_card_read(const char *path, struct cvy_card *out);
void cvy_card_free(struct cvy_card *card);

/* A file of weights with the card in it. Local. */
cvy_status cvy_card_write(const struct cvy_card *card, const struct cvy_tensors *weights, const char *path);

/* Is this file's network the task's? CVY_ERR_DATA names the first difference: model, number of classes, or a
   class's name. An empty card fits (the tensors' names and shapes are checked when they are loaded). */
cvy_status cvy_card_check(const struct cvy_card *card, const struct cvy_task *task, const char *path);
/* The same of the model alone. */
cvy_status cvy_card_check_model(const struct cvy_card *card, const struct cvy_task *task, const char *path);
/* Fills what the options leave open from the card: model, classes, channels, input, resize, mean, std, EXIF. Texts are
   the card's, which must outlive the options. */
void cvy_card_complete(const struct cvy_card *card, struct cvy_task_options *options);

#endif
