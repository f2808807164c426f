/* The program: finds the subcommand, parses its flags, runs it, says what went wrong. The only file that decides
   about the exit code: 0 done, 1 failed, 2 wrong usage, 3 bad data, 4 a device or rank lost, 130 interrupted.
   Nothing here touches a device, so that --version and --help are instant. */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/printer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The reason is the last thing on stderr; CONVOY_TRACE=1 adds the places that it came through before it. */
static int fail(cvy_status status) {
    fflush(stdout);
    if (getenv("CONVOY_TRACE"))
        fprintf(stderr, "convoy: trace: %s\n", cvy_error_trace());
    fprintf(stderr, "convoy: %s: %s\n", status == CVY_INTERRUPTED ? "stopped" : "error", cvy_error());
    return cvy_exit_code(status);
}

/* One call, one line: lines of different threads do not mix. On a terminal a progress bar may stand there. */
static void write_log(void *context, cvy_log_level level, const char *line) {
    (void)context;
    fprintf(stderr, "%sconvoy: %s%s\n", printer_is_terminal(STDERR_FILENO) ? "\r\033[K" : "",
            level == CVY_LOG_WARNING ? "warning: " : "", line);
}

static void print_usage(FILE *to) {
    size_t n;
    const struct command *const *table = command_table(&n);
    fprintf(
        to,
        "Convoy %s trains image-recognition networks on many devices, with the same bits on any number.\n\n"
        "usage: convoy COMMAND [flags]     convoy COMMAND --help     convoy --version\n\n",
        cvy_version());
    for (size_t i = 0; i < n; i++)
        fprintf(to, "  %-9s %s\n", table[i]->name, table[i]->help);
}

static cvy_status print_help(const struct command *command) {
    struct cvy_text text = {0};
    char *help;
    cvy_text_printf(&text, "usage: convoy %s %s\n\n%s\n", command->name, command->usage, command->help);
    flags_help(command->groups, &text);
    if (command->more_help)
        command->more_help(&text);
    CVY_TRY(cvy_text_take(&text, &help));
    fputs(help, stdout);
    free(help);
    return CVY_OK;
}

static cvy_status find_command(const char *name, const struct command **out) {
    const char *names[32];
    size_t n;
    const struct command *const *table = command_table(&n);
    for (size_t i = 0; i < n && i < 32; i++) {
        names[i] = table[i]->name;
        if (!strcmp(name, names[i])) {
            *out = table[i];
            return CVY_OK;
        }
    }
    const char *near = cvy_nearest(name, names, n);
    if (near)
        return CVY_FAIL(CVY_ERR_USAGE, "unknown command '%s'; did you mean '%s'?", name, near);
    return CVY_FAIL(CVY_ERR_USAGE, "unknown command '%s'; `convoy --help` lists them", name);
}

/* A result that did not reach its file is a failure, like any other. */
static cvy_status flush_output(void) {
    if (fflush(stdout) != 0 || ferror(stdout))
        return CVY_FAIL(CVY_ERR_IO, "the output could not be written: is the disk full?");
    return CVY_OK;
}

static cvy_status run_command(const struct command *command, int argc, char **argv) {
    const cvy_log_sink log = {.write = write_log};
    struct options options = {.help = 0};
    struct flag_values values = {
        .options = &options, .groups = command->groups, .is_elsewhere = command_has_flag};
    struct interrupt interrupt = {.is_open = false};
    cvy_status status = flags_parse(&values, argc, argv);
    if (status == CVY_OK && !command->takes_interrupts)
        status = interrupt_open(&interrupt, false, &log);
    if (status == CVY_OK)
        status = options.help ? print_help(command) : command->run(&values, &log);
    interrupt_close(&interrupt);
    flags_free(&values);
    return status == CVY_OK ? flush_output() : status;
}

/* Whoever starts us with stdin, stdout or stderr closed must not find our lines in the next file that we open. */
static void fill_standard_files(void) {
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv) {
    fill_standard_files();
    if (argc < 2) {
        print_usage(stderr);
        return cvy_exit_code(CVY_ERR_USAGE);
    }
    if (!strcmp(argv[1], "--version")) {
        printf("convoy %s\n", cvy_version());
        return 0;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_usage(stdout);
        return 0;
    }
    const struct command *command;
    cvy_status status = find_command(argv[1], &command);
    if (status == CVY_OK)
        status = run_command(command, argc - 2, argv + 2);
    return status == CVY_OK ? 0 : fail(status);
}
