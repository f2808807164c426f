# What `make install` leaves is enough to build against: header, library, pkg-config file. The library exports
# the functions of the public headers and nothing else.
set -eu

[ -z "$SANITIZE" ] || { echo "skipped: programs outside the build are not linked with the sanitizer"; exit 77; }

cmake --install "$BUILD" --prefix "$PWD/usr" > log || { cat log; exit 1; }
export PKG_CONFIG_PATH="$PWD/usr/lib/pkgconfig:$(ls -d "$PWD"/usr/lib/*/pkgconfig 2>/dev/null || true)"
test "$(pkg-config --modversion convoy)" = "$("$CONVOY" --version | sed 's/^convoy //')"

cat > user.c <<'END'
#include <convoy/convoy.h>
#include <stdio.h>

int main(void) {
    cvy_graph *graph;
    if (cvy_graph_new(&graph) != CVY_OK)
        return 1;
    cvy_value images = cvy_input(graph, "images", 1, 8, 8);
    cvy_output(graph, "logits", cvy_model(graph, "lenet5", images, 10));
    cvy_status status = cvy_graph_status(graph);
    cvy_graph_free(graph);
    puts(cvy_version());
    return cvy_exit_code(status);
}
END
"$CC" -std=c11 -Wall -Wextra -Werror user.c -o user $(pkg-config --cflags --libs convoy)
library=$(pkg-config --variable=libdir convoy)
LD_LIBRARY_PATH=$library ./user
# all that --static asks for is there
"$CC" -std=c11 user.c -o static $(pkg-config --cflags convoy) "$library/libconvoy.a" $(pkg-config --static --libs convoy)
./static
# the installed program finds the installed plugins
for launcher in mpirun.openmpi mpirun.mpich; do
    plugin=libconvoy_mpi_${launcher#mpirun.}.so
    [ -e "$BUILD/$plugin" ] && command -v $launcher >/dev/null || continue
    test -e "$library/convoy/$plugin"
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 $launcher -n 1 usr/bin/convoy train \
        --data digits --model lenet5 --epochs 1 --batch-size 256 >out 2>err </dev/null || { cat err; exit 1; }
    grep -q '^done: ' out
done
make -C "$SOURCE" -n install PREFIX="$PWD/two words" > plan
grep -qF -- "--prefix \"$PWD/two words\"" plan || { cat plan; exit 1; }

nm -D --defined-only "$library/libconvoy.so" | awk '$2 == "T" || $2 == "D" || $2 == "B" || $2 == "R" { print $3 }' > exported
sed -n 's/^CVY_API .*[ *]\(cvy_[a-z0-9_]*\)(.*/\1/p' "$SOURCE"/include/convoy/*.h | sort > declared
sort exported | diff declared -
