/* The control connection when processes are killed or stopped, or end while they speak. Every rank is a forked process,
   forked while this one has no thread; it says through its exit code whether it was told what it should be. */
#include "comm/control_inner.h"
#include "comm/control_processes.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a rank does once all are there. */
struct role {
    const char *expects;  /* ends well when told this as the end of the run; NULL: when told nothing */
    double lingers_s;     /* then stays for so long */
    const char *gives_up; /* ends the run with this and its process at once */
};

struct family {
    int size;
    double timeout_s;
    const struct role *roles;
    pid_t pid[MAX_RANKS];
    /* pipes: the address, read by each of the others; a byte of each that has started; then one for who gives up */
    int address[2], here[2], go[2];
};

/* ---- a child ------------------------------------------------------------------------------------------- */

static void die(const char *what, const char *detail) {
    fprintf(stderr, "child %d: %s: %s\n", (int)getpid(), what, detail);
    _exit(1);
}

static void say_here(const struct family *family) {
    if (write(family->here[1], "h", 1) != 1)
        die("pipe", "closed");
}

/* The notes must have arrived before anybody is killed: else the test would judge the wrong thing. */
static void await_notes(const struct family *family, struct process *me) {
    struct cvy_control *control = me->control;
    for (bool all = false; !all; pause_s(0.005)) {
        int n = 0;
        pthread_mutex_lock(&control->lock);
        for (int i = 0; i < control->n_lines; i++)
            n += control->lines[i].tag[0] != '\0';
        pthread_mutex_unlock(&control->lock);
        all = n == (me->rank == 0 ? family->size - 1 : 1);
    }
}

static void play(const struct family *family, int rank) {
    static struct process me;
    const struct role *role = &family->roles[rank];
    char address[CVY_CONTROL_ADDRESS] = "", note[32];
    me = (struct process){.rank = rank, .size = family->size};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody is left behind, whatever happens */
    alarm(2 * PATIENCE_S);
    if (rank == 0) {
        if (cvy_control_listen(family->size, family->timeout_s, address, &me.control) != CVY_OK)
            die("listen", cvy_error());
        for (int r = 1; r < family->size; r++) {
            if (write(family->address[1], address, sizeof address) != (ssize_t)sizeof address)
                die("pipe", "closed");
        }
    } else if (read(family->address[0], address, sizeof address) != (ssize_t)sizeof address) {
        die("pipe", "closed");
    }
    if (begin(&me, family->timeout_s, address) != CVY_OK)
        die("start", cvy_error());
    snprintf(note, sizeof note, "bucket %d", rank);
    cvy_control_note(me.control, (uint64_t)(10 + rank), note);
    await_notes(family, &me);
    say_here(family);
    if (role->gives_up) {
        char byte;
        if (read(family->go[0], &byte, 1) != 1)
            die("pipe", "closed");
        cvy_control_abandon(me.control, -1, role->gives_up);
        _exit(0);
    }
    if (role->expects && !heard(&me, 1))
        die("told nothing, not", role->expects);
    pause_s(role->lingers_s);
    cvy_control_close(me.control);
    if (n_heard(&me) != !!role->expects)
        die("told too much", me.ears.reason[n_heard(&me) - 1]);
    if (role->expects && (me.ears.group[0] != -1 || !strstr(me.ears.reason[0], role->expects)))
        die(role->expects, me.ears.reason[0]);
    _exit(0);
}

/* ---- the parent ---------------------------------------------------------------------------------------- */

/* Forks all ranks and waits until they have met. */
static void bear(struct family *family, int size, double timeout_s, const struct role *roles) {
    *family = (struct family){.size = size, .timeout_s = timeout_s, .roles = roles};
    assert_int_equal(pipe(family->address) + pipe(family->here) + pipe(family->go), 0);
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        family->pid[r] = fork();
        assert_true(family->pid[r] >= 0);
        if (family->pid[r] == 0)
            play(family, r);
    }
    close(family->here[1]);
    for (int r = 0; r < size; r++) {
        char byte;
        assert_int_equal(read(family->here[0], &byte, 1), 1);
    }
    assert_int_equal(write(family->go[1], "g", 1), 1);
}

static void close_pipes(struct family *family) {
    close(family->address[0]);
    close(family->address[1]);
    close(family->here[0]);
    close(family->go[0]);
    close(family->go[1]);
}

static void assert_ends_well(struct family *family, int rank) {
    int status;
    assert_int_equal(waitpid(family->pid[rank], &status, 0), family->pid[rank]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("rank %d ended with status %#x", rank, (unsigned)status);
}

static void bury(struct family *family, pid_t killed) {
    for (int r = 0; r < family->size; r++) {
        if (family->pid[r] == killed)
            waitpid(killed, NULL, 0);
        else
            assert_ends_well(family, r);
    }
    close_pipes(family);
}

static void test_killed(void **state) {
    (void)state;
    static const char told[] =
        "rank 2 is lost: its process ended without a word (killed?); it was last at bucket 2, number 12";
    struct family family;
    bear(&family, 4, 8,
         (struct role[]){{.expects = told}, {.expects = told}, {.expects = "killed"}, {.expects = told}});
    int64_t start = cvy_now_ns();
    kill(family.pid[2], SIGKILL);
    bury(&family, family.pid[2]);
    assert_true(cvy_now_ns() - start < 4000000000); /* an end of file needs no silence of 6 s */
}

static void test_root_killed(void **state) {
    (void)state;
    static const char told[] =
        "rank 0 is lost: its process ended without a word (killed?); it was last at bucket 0, number 10";
    struct family family;
    bear(&family, 3, 8, (struct role[]){{.expects = "killed"}, {.expects = told}, {.expects = told}});
    kill(family.pid[0], SIGKILL);
    bury(&family, family.pid[0]);
}

/* The stopped rank learns what it missed when it goes on; rank 0 has ended by then, or not yet. */
static void test_stopped(void **state) {
    (void)state;
    static const char told[] = "rank 1 is lost: no sign of life for ";
    for (int root_stays = 0; root_stays < 2; root_stays++) {
        struct family family;
        bear(&family, 3, 1,
             (struct role[]){{.expects = told, .lingers_s = root_stays ? 3 : 0},
                             {.expects = told},
                             {.expects = "link is cut); it was last at bucket 1"}});
        int64_t start = cvy_now_ns();
        kill(family.pid[1], SIGSTOP);
        assert_ends_well(&family, 2);
        double took_s = (double)(cvy_now_ns() - start) * 1e-9;
        assert_true(took_s > 0.5 && took_s < 5); /* 0.75 to 0.875 s, on a machine at rest */
        if (!root_stays)
            assert_ends_well(&family, 0);
        kill(family.pid[1], SIGCONT);
        assert_ends_well(&family, 1);
        if (root_stays)
            assert_ends_well(&family, 0);
        close_pipes(&family);
    }
}

static void test_root_stopped(void **state) {
    (void)state;
    static const char told[] = "rank 0 is lost: no sign of life for ";
    struct family family;
    bear(&family, 3, 1, (struct role[]){{.expects = "killed"}, {.expects = told}, {.expects = told}});
    kill(family.pid[0], SIGSTOP);
    assert_ends_well(&family, 1);
    assert_ends_well(&family, 2);
    kill(family.pid[0], SIGKILL);
    waitpid(family.pid[0], NULL, 0);
    close_pipes(&family);
}

/* All are stopped for longer than any silence that counts, and go on: nobody was silent while another listened. */
static void test_all_stopped(void **state) {
    (void)state;
    struct family family;
    bear(&family, 3, 2, (struct role[]){{.lingers_s = 5}, {.lingers_s = 5}, {.lingers_s = 5}});
    for (int r = 0; r < 3; r++)
        kill(family.pid[r], SIGSTOP);
    pause_s(3);
    for (int r = 0; r < 3; r++)
        kill(family.pid[r], SIGCONT);
    bury(&family, -1);
}

/* Who gives up and ends at once is still understood: by rank 0, and through it; and rank 0 by all. */
static void test_last_words(void **state) {
    (void)state;
    static const char told[] = "step 3: the loss is not finite";
    for (int round = 0; round < 10; round++) {
        struct family family;
        bear(&family, 4, 2,
             (struct role[]){{.expects = told}, {.gives_up = told}, {.expects = told}, {.expects = told}});
        bury(&family, -1);
        bear(&family, 4, 2,
             (struct role[]){{.gives_up = told}, {.expects = told}, {.expects = told}, {.expects = told}});
        bury(&family, -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),      cmocka_unit_test(test_root_killed),
        cmocka_unit_test(test_stopped),     cmocka_unit_test(test_root_stopped),
        cmocka_unit_test(test_all_stopped), cmocka_unit_test(test_last_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
