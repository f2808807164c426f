/* The file that `convoy bench tune` writes and --tuning FILE reads: settings for one network on one machine, as flags,
   with what they gained. They are settings like any other: a checkpoint keeps S, T and the algorithms, processes must
   agree on them, and run.json repeats the run without the file. */
#ifndef CVY_CLI_TUNING_H
#define CVY_CLI_TUNING_H

#include "cli/command.h"

extern const struct flag_group group_tuning;

/* The model's name of the first processor, or "". */
enum { TUNING_PROCESSOR = 128 };
void tuning_processor(char name[TUNING_PROCESSOR]);
/* What the measurements hold for: processor, cores, libraries, instruction set; and how many cores. */
cvy_status tuning_machine(struct cvy_text *out, int *n_cores);

/* Sets the flags that --tuning FILE holds; without the flag nothing. CVY_ERR_USAGE: it was made by another version, on
   another machine or for another network, or the command line says otherwise. Local. */
cvy_status tuning_apply(struct flag_values *values);

#endif
