/* A network over MPI. The binary interfaces of MPI libraries differ, so this file, which alone knows mpi.h, is compiled
   once with each: libconvoy_mpi_openmpi.so and libconvoy_mpi_mpich.so. It is thin on purpose: everything that Convoy
   decides (chunks, order of additions, deadlines) is in libconvoy, compiled and tested once. */
#include <convoy/plugin.h>

#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(struct cvy_network_request), "a request must fit");

struct mpi {
    MPI_Comm comm; /* ours alone: no tag of another library can meet one of ours */
};

static int fail(char *error, const char *what, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (MPI_Error_string(code, text, &n) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", code);
    snprintf(error, CVY_NETWORK_ERROR, "%s: %s", what, text);
    return -1;
}

#define TRY_MPI(call, what)                    \
    do {                                       \
        int code_ = (call);                    \
        if (code_ != MPI_SUCCESS)              \
            return fail(error, (what), code_); \
    } while (0)

/* UCX, below MPICH, aborts when a peer's connection breaks. The control connection finds the loss at the same moment:
   its thread gets the time to say whose it is and to end the process; if it does not, the abort goes on. */
static void wait_for_last_words(int signal_number) {
    (void)poll(NULL, 0, 1000);
    signal(signal_number, SIG_DFL);
}

static int mpi_open(void **self, int *rank, int *size, int *max_tag, char *error) {
    int provided, is_set, *upper;
    /* this thread alone will call MPI, and to MPI the thread that initialises is the main one */
    TRY_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    if (provided < MPI_THREAD_FUNNELED) {
        snprintf(error, CVY_NETWORK_ERROR, "this MPI library allows no threads");
        return -1;
    }
    struct mpi *mpi = malloc(sizeof *mpi);
    if (!mpi) {
        snprintf(error, CVY_NETWORK_ERROR, "out of memory");
        return -1;
    }
    *self = mpi;
    signal(SIGABRT, wait_for_last_words);
    TRY_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    TRY_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &mpi->comm), "MPI_Comm_dup");
    TRY_MPI(MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    TRY_MPI(MPI_Comm_rank(mpi->comm, rank), "MPI_Comm_rank");
    TRY_MPI(MPI_Comm_size(mpi->comm, size), "MPI_Comm_size");
    TRY_MPI(MPI_Comm_get_attr(mpi->comm, MPI_TAG_UB, &upper, &is_set), "MPI_TAG_UB");
    *max_tag = is_set ? *upper : 32767; /* what the standard promises */
    return 0;
}

static int mpi_exchange(void *self, const void *mine, void *all, size_t n_bytes, char *error) {
    const struct mpi *mpi = self;
    TRY_MPI(MPI_Allgather(mine, (int)n_bytes, MPI_BYTE, all, (int)n_bytes, MPI_BYTE, mpi->comm),
            "MPI_Allgather");
    return 0;
}

static void keep(struct cvy_network_request *out, MPI_Request request) {
    memcpy(out->word, &request, sizeof request);
}

/* requests are completed by mpi_test, in another function than the checker expects */
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker)
static int mpi_isend(void *self, int peer, int tag, const void *bytes, size_t n_bytes,
                     struct cvy_network_request *out, char *error) {
    const struct mpi *mpi = self;
    MPI_Request request;
    TRY_MPI(MPI_Isend(bytes, (int)n_bytes, MPI_BYTE, peer, tag, mpi->comm, &request), "MPI_Isend");
    keep(out, request);
    return 0;
}

static int mpi_irecv(void *self, int peer, int tag, void *bytes, size_t n_bytes,
                     struct cvy_network_request *out, char *error) {
    const struct mpi *mpi = self;
    MPI_Request request;
    if (peer == CVY_NETWORK_ANY)
        peer = MPI_ANY_SOURCE;
    TRY_MPI(MPI_Irecv(bytes, (int)n_bytes, MPI_BYTE, peer, tag, mpi->comm, &request), "MPI_Irecv");
    keep(out, request);
    return 0;
}
// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

static int mpi_test(void *self, struct cvy_network_request *held, int *is_done, char *error) {
    (void)self;
    MPI_Request request;
    memcpy(&request, held->word, sizeof request);
    TRY_MPI(MPI_Test(&request, is_done, MPI_STATUS_IGNORE), "MPI_Test");
    keep(held, request);
    return 0;
}

static int mpi_cancel(void *self, struct cvy_network_request *held, char *error) {
    (void)self;
    MPI_Request request;
    memcpy(&request, held->word, sizeof request);
    TRY_MPI(MPI_Cancel(&request), "MPI_Cancel");
    keep(held, request);
    return 0;
}

static int mpi_close(void *self, char *error) {
    struct mpi *mpi = self;
    TRY_MPI(MPI_Comm_free(&mpi->comm), "MPI_Comm_free");
    free(mpi);
    TRY_MPI(MPI_Finalize(), "MPI_Finalize");
    return 0;
}

extern const struct cvy_network cvy_plugin_network;
__attribute__((visibility("default"))) const struct cvy_network cvy_plugin_network = {
    .abi = CVY_NETWORK_ABI,
#ifdef OPEN_MPI
    .name = "Open MPI",
#else
    .name = "MPICH",
#endif
    .piece_bytes =
        (size_t)512 << 10, /* beyond it TCP gains nothing, and waits for the first sum get longer */
    .open = mpi_open,
    .exchange = mpi_exchange,
    .isend = mpi_isend,
    .irecv = mpi_irecv,
    .test = mpi_test,
    .cancel = mpi_cancel,
    .close = mpi_close,
};
