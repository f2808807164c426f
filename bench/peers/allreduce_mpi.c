/* MPI_Allreduce on the same work as bench/allreduce.c, in pieces of several sizes: floats, in place, between the
 processes * of mpirun. Prints a line for each size of piece; bench/peers/allreduce compiles and runs it.
 *   usage: allreduce_mpi [MB] [ROUNDS]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MAX_ROUNDS = 1001, N_WARM_UP = 3 };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double reduce(float *memory, int n, int piece, int rank) {
    for (int i = 0; i < n; i++)
        memory[i] = (float)((i * 7L + rank * 3L) % 101);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int at = 0; at < n; at += piece)
        MPI_Allreduce(MPI_IN_PLACE, memory + at, n - at < piece ? n - at : piece, MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

int main(int argc, char **argv) {
    static const int kilobytes[] = {128, 256, 512, 1024, 2048};
    static double s[MAX_ROUNDS];
    MPI_Init(&argc, &argv);
    int rank, n = (int)((argc > 1 ? atof(argv[1]) : 45) * 1e6 / sizeof(float));
    int n_rounds = argc > 2 ? atoi(argv[2]) : 31;
    size_t page = (size_t)2 << 20, n_bytes = ((size_t)n * sizeof(float) + page - 1) / page * page;
    float *memory = aligned_alloc(page, n_bytes);
    if (!memory || n_rounds < 1 || n_rounds > MAX_ROUNDS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    madvise(memory, n_bytes, MADV_HUGEPAGE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t k = 0; k < sizeof kilobytes / sizeof *kilobytes; k++) {
        for (int round = -N_WARM_UP; round < n_rounds; round++) {
            double mine = reduce(memory, n, kilobytes[k] * 256, rank);
            if (round >= 0)
                MPI_Reduce(&mine, &s[round], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        }
        qsort(s, (size_t)n_rounds, sizeof *s, compare);
        if (rank == 0)
            printf("%d KB: median %.3f ms, best %.3f ms, %.2f GB/s\n", kilobytes[k], s[n_rounds / 2] * 1e3,
                   s[0] * 1e3, n * 4e-9 / s[n_rounds / 2]);
    }
    free(memory);
    MPI_Finalize();
}
