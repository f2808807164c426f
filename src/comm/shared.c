/* Anonymous files as memory that two processes share. Failing is no error: the network carries the messages then. */
#include "comm/shared.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool map(struct cvy_shared *shared, size_t n_bytes, int file) {
    size_t head = sizeof(struct cvy_shared_counts);
    void *memory = mmap(NULL, head + n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (memory == MAP_FAILED)
        return false;
    *shared = (struct cvy_shared){
        .counts = memory, .places = (unsigned char *)memory + head, .n_bytes = head + n_bytes, .file = file};
    return true;
}

bool cvy_shared_make(struct cvy_shared *shared, size_t n_bytes, struct cvy_shared_name *name) {
    struct stat stat;
    int file = memfd_create("convoy-lane", MFD_CLOEXEC);
    /* taken now: memory that is missing later would end the process */
    if (file >= 0 && posix_fallocate(file, 0, (off_t)(sizeof(struct cvy_shared_counts) + n_bytes)) == 0 &&
        fstat(file, &stat) == 0 && map(shared, n_bytes, file)) {
        *name = (struct cvy_shared_name){.pid = getpid(), .file = file, .inode = stat.st_ino};
        return true;
    }
    if (file >= 0)
        close(file);
    return false;
}

bool cvy_shared_open(struct cvy_shared *shared, size_t n_bytes, const struct cvy_shared_name *name) {
    char path[64];
    struct stat stat;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", name->pid, name->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0 && fstat(file, &stat) == 0 && stat.st_ino == name->inode &&
        (size_t)stat.st_size == sizeof(struct cvy_shared_counts) + n_bytes && map(shared, n_bytes, file))
        return true;
    if (file >= 0)
        close(file);
    return false;
}

void cvy_shared_free(struct cvy_shared *shared) {
    if (!shared->counts)
        return;
    munmap(shared->counts, shared->n_bytes);
    close(shared->file);
    *shared = (struct cvy_shared){0};
}
