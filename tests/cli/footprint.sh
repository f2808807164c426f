# What `convoy explain` says that a device takes is what training takes: within 10 % of the growth of VmHWM, a process for
# each device, arenas of 200 MB and more. bench/memory.c measures; here its numbers are held against explain's.
. "$SOURCE/tests/cli/harness"

[ -z "${SANITIZE:-}" ] || skip "a sanitizer has memory of its own"

# check PROCESSES: the lines of bench_memory in the file out, one for each process: as many, and each within 10 %.
check() {
    cat out
    awk -v want="$1" '
        /^rank/ { n++; explained = $6; grew = $11; if (explained < 200 || grew > 1.1 * explained || grew < 0.9 * explained) bad = 1 }
        END { exit n != want || bad }' out || die "not $1 processes within 10 % of what was explained, or arenas too small"
}

# explained BENCH-LINE: its first number
explained() { sed -n "s/^rank $1 of .*explained \([0-9.]*\) MB.*/\1/p" out; }

model="--model resnet18_cifar --input 3x32x32 --num-classes 10 --batch-size 32 --threads-per-device 1"

"$BUILD/bench_memory" batch=32 threads=1 steps=2 >out || die "bench_memory failed"
check 1
took=$(explained 0)
ok explain $model --devices cpu:0
awk -v took="$took" '$1 == "all" { exit !($2 >= took - 0.06 && $2 <= took + 0.06) }' out ||
    { cat out; die "convoy explain does not say $took MB"; }

"$BUILD/bench_memory" batch=128 threads=1 strategy=pipeline shards=8 devices=cpu:0-1 steps=2 >out ||
    die "bench_memory failed"
check 1

# under LIBRARY SETTINGS…: two processes with a device each
under() {
    library=$1
    shift
    [ -e "$BUILD/libconvoy_mpi_$library.so" ] || return 0
    "$SOURCE/tests/with_mpirun" "$library" 2 "$BUILD/bench_memory" threads=1 steps=2 "$@" >out
    case $? in
    0) check 2 ;;
    77) echo "no mpirun.$library" ;;
    *) die "bench_memory under $library failed" ;;
    esac
}
under openmpi strategy=ddp batch=64
under openmpi strategy=pipeline batch=128 shards=8
under mpich strategy=ddp batch=64
