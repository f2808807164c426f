# Of several processes one looks through the folders, and the others read what it found; where they do not see that, each
# looks for itself. The weights are the same.
. "$SOURCE/tests/cli/harness"
[ -z "${SANITIZE:-}" ] || skip "a sanitizer wants to be loaded first, and so does what counts"
make_set
find set -exec touch -d '1 hour ago' {} +

cat >count.c <<'END'
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

DIR *opendir(const char *path) {
    DIR *(*next)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    char line[4096];
    int fd = open(getenv("OPENED"), O_WRONLY | O_CREAT | O_APPEND, 0666);
    int n = snprintf(line, sizeof line, "%s\n", path);
    if (fd < 0 || n < 0 || write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
    return next(path);
}
END
"${CC:-cc}" -shared -fPIC -o count.so count.c -ldl || die "count.c does not build"
export OPENED="$PWD/opened"
train="train --data folder:set --model lenet5 --input 3x16x16 --resize 20 --crop 16x16 --batch-size 6 --epochs 1 --shards 2
    --threads-per-device 1 --devices cpu:0"

# scans N FOLDER: so many looked through it since the last time.
scans() {
    same "$(grep -c "^$2\$" opened)" "$1" "who looked through $2"
}

XDG_CACHE_HOME=$PWD/one LD_PRELOAD=$PWD/count.so "$CONVOY" $train >out 2>err || { cat err; die "one process"; }
want=$(hash_of_out) || exit 1
scans 1 set/train/ant
scans 1 set/val/bee
for library in openmpi mpich; do
    rm -f opened
    "$SOURCE/tests/with_mpirun" $library 2 env XDG_CACHE_HOME="$PWD/$library" LD_PRELOAD="$PWD/count.so" "$CONVOY" $train >out 2>err
    rc=$?
    [ $rc -ne 77 ] || continue
    [ $rc -eq 0 ] || { cat out err; die "two processes of $library"; }
    same "$(hash_of_out)" "$want" "the weights of two processes"
    scans 1 set/train/ant
    scans 1 set/train/bee
    scans 1 set/val/bee
    # each has a cache of its own, as on two machines
    rm -f opened
    "$SOURCE/tests/with_mpirun" $library 2 sh -c \
        "XDG_CACHE_HOME=$PWD/$library\$\$ LD_PRELOAD=$PWD/count.so exec \"$CONVOY\" $(echo $train)" >out 2>err || { cat err; die "two caches"; }
    same "$(hash_of_out)" "$want" "the weights of two processes that scan"
    scans 2 set/train/ant
    scans 2 set/val/bee
done
