/* convoy doctor hello: do the processes that a launcher started meet? Joining and parting, which every collective
   command does, is all there is to it. */
#include "cli/command.h"

#include <stdio.h>

static cvy_status run(struct flag_values *values, const cvy_log_sink *log) {
    const struct options *o = values->options;
    (void)log;
    CVY_TRY(command_agree(values, command_no_rest(values)));
    int n = cvy_world_size(o->world);
    printf("%d process%s met\n", n, n == 1 ? "" : "es");
    return CVY_OK;
}

static const struct flag hello_flags[] = {
    FLAG("timeout", FLOAT, timeout_s, "seconds that a process waits for the others", .initial = "10",
         .min = 0.1, .max = 1e6, .is_own = true),
};
static const struct flag_group group_hello = {.title = "Hello", .flags = hello_flags, .n = 1};

static const struct flag_group *const groups[] = {&group_hello, &group_common, NULL};

const struct command command_doctor_hello = {
    .name = "doctor hello",
    .usage = "[--timeout S]     under mpirun: mpirun -n 2 convoy doctor hello",
    .help = "under mpirun: do the processes meet?",
    .groups = groups,
    .is_collective = true,
    .run = run,
};
