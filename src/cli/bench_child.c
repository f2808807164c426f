/* See bench.h: `bench step` in a process of its own. */
#include "cli/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- words --------------------------------------------------------------------------------------------- */

cvy_status bench_add_given(struct flag_values *values, struct bench_words *out) {
    const struct flag_values step = {.groups = command_bench_step.groups};
    for (size_t i = 0; i < values->given.n; i++) {
        const struct flag *flag = values->given.data[i];
        struct cvy_text text = {0};
        char *word;
        if (flags_find(&step, flag->name) != flag || !strcmp(flag->name, "json") ||
            !strcmp(flag->name, "timeline"))
            continue;
        bool is_set = flags_print(values, flag, &text);
        cvy_status status = text.status;
        if (status == CVY_OK && is_set)
            status = cvy_pool_printf(&values->pool, &word, "--%s=%s", flag->name, text.data);
        if (status == CVY_OK && is_set)
            status = cvy_vec_push(&out->items, word);
        cvy_text_free(&text);
        CVY_TRY(status);
    }
    return CVY_OK;
}

cvy_status bench_add_text(struct cvy_pool *pool, const char *text, struct bench_words *out) {
    char *to;
    CVY_TRY(cvy_pool_alloc(pool, strlen(text) + 1, (void **)&to));
    for (const char *at = text; *(at += strspn(at, " \t\n"));) {
        CVY_TRY(cvy_vec_push(&out->items, to));
        for (char quote = 0; *at && (quote || !strchr(" \t\n", *at)); at++) {
            if (quote ? *at == quote : *at == '\'' || *at == '"')
                quote = quote ? 0 : *at;
            else
                *to++ = *at;
            if (quote && !at[1])
                return CVY_FAIL(CVY_ERR_USAGE, "'%s': the quote %c has no end", text, quote);
        }
        *to++ = 0;
    }
    return CVY_OK;
}

/* ---- processes ----------------------------------------------------------------------------------------- */

struct child {
    FILE *out, *err; /* nameless files: unlike pipes they are never full */
    pid_t pid;
};

/* Between fork and exec: nothing but calls that are safe there. */
static void become(const struct child *child, char *const *argv, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* nobody would wait for it */
    if (getppid() == parent && dup2(fileno(child->out), STDOUT_FILENO) >= 0 &&
        dup2(fileno(child->err), STDERR_FILENO) >= 0)
        execv("/proc/self/exe", argv);
    _exit(127);
}

static cvy_status start(struct child *child, char *const *argv) {
    pid_t parent = getpid();
    child->out = tmpfile();
    child->err = tmpfile();
    if (!child->out || !child->err)
        return CVY_FAIL(CVY_ERR_IO, "a file for a benchmark's output cannot be made: %s", strerror(errno));
    child->pid = fork();
    if (child->pid < 0)
        return CVY_FAIL(CVY_ERR_FAILED, "a process cannot be started: %s", strerror(errno));
    if (child->pid == 0)
        become(child, argv, parent);
    return CVY_OK;
}

/* The last line that a failed one wrote, without "convoy: error: ". */
static cvy_status pass_on(const struct child *child, int result) {
    static const cvy_status statuses[] = {[2] = CVY_ERR_USAGE, [3] = CVY_ERR_DATA, [4] = CVY_ERR_LOST};
    int code = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
    cvy_status status = code >= 2 && code <= 4 ? statuses[code] : CVY_ERR_FAILED;
    char line[1024], last[1024] = "";
    rewind(child->err);
    while (fgets(line, sizeof line, child->err))
        memcpy(last, line, sizeof last);
    last[strcspn(last, "\n")] = 0;
    const char *reason = strstr(last, "error: ");
    if (WIFSIGNALED(result))
        return CVY_FAIL(status, "bench step ended by signal %d", WTERMSIG(result));
    if (code == cvy_exit_code(CVY_INTERRUPTED))
        return CVY_FAIL(CVY_INTERRUPTED, "interrupted");
    return CVY_FAIL(status, "%s", reason ? reason + 7 : *last ? last : "bench step could not be started");
}

static cvy_status read_result(const struct child *child, json_t **out) {
    json_error_t error;
    rewind(child->out);
    *out = json_loadf(child->out, 0, &error);
    if (!json_is_object(*out))
        return CVY_FAIL(CVY_ERR_FAILED, "bench step: its output is no JSON: %s", error.text);
    return CVY_OK;
}

static cvy_status finish(const struct child *child, json_t **out) {
    int result;
    while (waitpid(child->pid, &result, 0) < 0)
        if (errno != EINTR)
            return CVY_FAIL(CVY_ERR_FAILED, "a process is lost: %s", strerror(errno));
    return result == 0 ? read_result(child, out) : pass_on(child, result);
}

cvy_status bench_child(const struct bench_words *words, json_t **out) {
    static char *const first[] = {"convoy", "bench", "step", "--json"};
    enum { N_FIRST = sizeof first / sizeof *first };
    struct child child = {.pid = 0};
    char **argv;
    CVY_TRY(CVY_ALLOC(argv, N_FIRST + words->items.n + 1));
    memcpy(argv, first, sizeof first);
    if (words->items.n)
        memcpy(argv + N_FIRST, words->items.data, words->items.n * sizeof *argv);
    fflush(NULL);
    cvy_status status = start(&child, argv);
    if (status == CVY_OK)
        status = finish(&child, out);
    if (child.out)
        fclose(child.out);
    if (child.err)
        fclose(child.err);
    free(argv);
    return status;
}
