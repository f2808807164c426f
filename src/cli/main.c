/* The program: finds the subcommand, parses its flags, runs it, says what went wrong. The only file that decides
   about the exit code: 0 done, 1 failed, 2 wrong usage, 3 bad data, 4 a device or rank lost, 5 unfit
   (doctor), 130 interrupted.
   Nothing here touches a device, so that --version and --help are instant. */
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/printer.h"
#include "cli/restarts.h"
#include "cli/tuning.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What this process says of the others, from a thread of the world, must not come after its own last line. */
struct voice {
    pthread_mutex_t lock;
    bool is_done;
};

static void end_voice(struct voice *voice) {
    pthread_mutex_lock(&voice->lock);
    voice->is_done = true;
    pthread_mutex_unlock(&voice->lock);
}

/* The reason is the last thing on stderr; CONVOY_TRACE=1 adds the places that it came through before it. Of several
   processes each says its own; one write, so that their lines do not mix. */
static int fail(const cvy_world *world, struct voice *voice, cvy_status status) {
    char who[32] = "";
    fflush(stdout);
    if (voice)
        end_voice(voice);
    if (cvy_world_size(world) > 1)
        snprintf(who, sizeof who, "rank %d: ", cvy_world_rank(world));
    if (getenv("CONVOY_TRACE"))
        fprintf(stderr, "convoy: %strace: %s\n", who, cvy_error_trace());
    fprintf(stderr, "convoy: %s%s: %s\n", who, status == CVY_INTERRUPTED ? "stopped" : "error", cvy_error());
    return cvy_exit_code(status);
}

/* One call, one line: lines of different threads do not mix. On a terminal a progress bar may stand there. Rank 0
   speaks for all processes. */
static void write_log(void *context, cvy_log_level level, const char *line) {
    const struct options *options = context;
    if (options->rank > 0)
        return;
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
        fprintf(to, "  %-13s %s\n", table[i]->name, table[i]->help);
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

/* How many of the words that begin argv are the command's name: all of its own or none. */
static int match(const char *name, int argc, char **argv) {
    size_t n = strcspn(name, " ");
    if (argc < 1 || strlen(argv[0]) != n || strncmp(argv[0], name, n) != 0)
        return 0;
    if (!name[n])
        return 1;
    return argc > 1 && !strcmp(argv[1], name + n + 1) ? 2 : 0;
}

/* "bench" alone, or with a second word that is none: says which there are. */
static cvy_status find_second_word(int argc, char **argv) {
    size_t n, length = strlen(argv[0]);
    const struct command *const *table = command_table(&n);
    struct cvy_text list = {0};
    for (size_t i = 0; i < n; i++)
        if (!strncmp(table[i]->name, argv[0], length) && table[i]->name[length] == ' ')
            cvy_text_printf(&list, "%s%s", list.n ? ", " : "", table[i]->name + length + 1);
    cvy_status status = CVY_OK;
    if (list.n)
        status = CVY_FAIL(CVY_ERR_USAGE, "'%s %s': the second word must be one of %s", argv[0],
                          argc > 1 ? argv[1] : "", list.data);
    cvy_text_free(&list);
    return status;
}

static cvy_status find_command(int argc, char **argv, const struct command **out, int *n_words) {
    const char *names[32];
    size_t n;
    const struct command *const *table = command_table(&n);
    *n_words = 0; /* "data check" goes before "data" */
    for (size_t i = 0; i < n && i < 32; i++) {
        names[i] = table[i]->name;
        int matched = match(names[i], argc, argv);
        if (matched > *n_words) {
            *n_words = matched;
            *out = table[i];
        }
    }
    if (*n_words)
        return CVY_OK;
    CVY_TRY(find_second_word(argc, argv));
    const char *near = cvy_nearest(argv[0], names, n);
    if (near)
        return CVY_FAIL(CVY_ERR_USAGE, "unknown command '%s'; did you mean '%s'?", argv[0], near);
    return CVY_FAIL(CVY_ERR_USAGE, "unknown command '%s'; `convoy --help` lists them", argv[0]);
}

/* Nobody reads what goes to stdout any more: `convoy train | head`, a terminal that was closed. */
static bool is_reader_gone(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR);
}

/* Started without stdout, see fill_standard_files. */
static bool is_output_absent(void) {
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY;
}

/* A result that did not reach its file is a failure, like any other; but a run whose results are in its folder may be
   started without stdout. */
static cvy_status flush_output(bool has_folder) {
    const bool is_written = fflush(stdout) == 0 && !ferror(stdout);
    if (!is_written && !is_reader_gone() && !(has_folder && is_output_absent()))
        return CVY_FAIL(CVY_ERR_IO, "the output could not be written: is the disk full?");
    return CVY_OK;
}

/* Each process says by itself that another one is lost: its own last line may come too late. */
static void write_loss(void *context, cvy_log_level level, const char *line) {
    struct voice *voice = context;
    (void)level;
    pthread_mutex_lock(&voice->lock);
    if (!voice->is_done)
        fprintf(stderr, "convoy: %s\n", line);
    pthread_mutex_unlock(&voice->lock);
}

/* Meets the other processes that a launcher started, also to tell them that the flags here are wrong. Rank 0 prints
   for all. */
static cvy_status join(struct options *options, struct interrupt *interrupt, struct voice *voice,
                       cvy_status before) {
    const cvy_log_sink log = {.write = write_loss, .context = voice};
    struct cvy_error error;
    cvy_error_save(&error, before);
    cvy_status status = cvy_world_open(options->timeout_s, &log, &options->world);
    if (before != CVY_OK)
        return cvy_error_restore(&error);
    CVY_TRY(status);
    options->rank = cvy_world_rank(options->world);
    interrupt->is_in_company = cvy_world_size(options->world) > 1;
    if (cvy_world_rank(options->world) > 0 && !freopen("/dev/null", "w", stdout))
        return CVY_FAIL(CVY_ERR_IO, "/dev/null cannot be opened");
    return CVY_OK;
}

enum { LINGER_US = 100000 }; /* so that the others have said it too before a launcher ends them */

/* Says what went wrong, then parts from the other processes: a launcher may end all of them as soon as one is gone.
   After a failure nobody waits. What the launcher's library left running is not taken apart. */
static int part(const struct options *options, struct voice *voice, cvy_status status) {
    cvy_world *world = options->world;
    bool is_in_company = cvy_world_size(world) > 1;
    bool is_common = status == CVY_OK || status == CVY_INTERRUPTED; /* with all processes */
    int code = status == CVY_OK ? 0 : fail(world, voice, status);
    cvy_status parted = cvy_world_close(world, is_common ? CVY_OK : status);
    if (is_common && parted != CVY_OK)
        code = fail(NULL, voice, parted);
    if (!is_in_company)
        return code;
    fflush(stdout);
    if (code != 0)
        usleep(LINGER_US);
    _exit(code);
}

static int run_command(const struct command *command, int argc, char **argv) {
    struct interrupt interrupt = {.is_open = false};
    struct voice voice = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct options options = {.interrupt = &interrupt};
    const cvy_log_sink log = {.write = write_log, .context = &options};
    struct flag_values values = {
        .options = &options, .groups = command->groups, .is_elsewhere = command_has_flag};
    bool is_parent = false;
    int code;
    if (command->is_collective)
        signal(SIGPIPE, SIG_IGN); /* a run goes on when nobody reads its output any more */
    cvy_status status = flags_parse(&values, argc, argv);
    if (status == CVY_OK && !options.help) /* it forks, so there is no thread yet */
        status = restarts_supervise(&values, &is_parent, &code);
    if (is_parent) {
        flags_free(&values);
        return code;
    }
    if (status == CVY_OK)
        status = interrupt_open(&interrupt, &log);
    if (status == CVY_OK && !options.help)
        status = tuning_apply(&values);
    if (command->is_collective && !options.help)
        status = join(&options, &interrupt, &voice, status);
    if (status == CVY_OK)
        status = options.help ? print_help(command) : command->run(&values, &log);
    if (status == CVY_OK)
        status = flush_output(options.output_dir != NULL);
    code = part(&options, &voice, status);
    interrupt_close(&interrupt);
    flags_free(&values);
    return code;
}

/* Whoever starts us with stdin, stdout or stderr closed must not find our lines in the next file that we open. What is
   written to a stdout that was closed fails: /dev/null, but only to read. */
static void fill_standard_files(void) {
    int fd;
    if (fcntl(STDIN_FILENO, F_GETFD) < 0)
        (void)!open("/dev/null", O_RDWR);
    if (fcntl(STDOUT_FILENO, F_GETFD) < 0)
        (void)!open("/dev/null", O_RDONLY);
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static int end_of(cvy_status status) { return status == CVY_OK ? 0 : fail(NULL, NULL, status); }

int main(int argc, char **argv) {
    fill_standard_files();
    signal(SIGXFSZ, SIG_IGN); /* then a file beyond `ulimit -f` is an error like a full disk */
    if (argc < 2) {
        print_usage(stderr);
        return cvy_exit_code(CVY_ERR_USAGE);
    }
    if (!strcmp(argv[1], "--version")) {
        printf("convoy %s\n", cvy_version());
        return end_of(flush_output(false));
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_usage(stdout);
        return end_of(flush_output(false));
    }
    const struct command *command;
    int n_words;
    cvy_status status = find_command(argc - 1, argv + 1, &command, &n_words);
    return status == CVY_OK ? run_command(command, argc - 1 - n_words, argv + 1 + n_words) : end_of(status);
}
