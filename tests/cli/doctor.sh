# convoy doctor, mostly on made-up trees of /proc and /sys: what it says, what mends it, and the exit code.
. "$SOURCE/tests/cli/harness"

# put FILE TEXT: a file of the tree in $tree
put() {
    mkdir -p "$tree/$(dirname "$1")"
    printf '%b' "$2" >"$tree/$1"
}

# tree NAME: a good machine of 4 cores without hyperthreads, to be changed by what follows
tree() {
    tree=$1
    put proc/cpuinfo 'processor\t: 0\nmodel name\t: Made Up 1\nflags\t\t: fpu avx2 fma avx512f avx512bw avx512vl avx512dq avx512_bf16\n'
    put proc/self/status 'Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n'
    put proc/self/cgroup '0::/box\n'
    put proc/meminfo 'MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:   8000000 kB\n'
    limits 1048576 unlimited
    put sys/devices/system/cpu/online '0-3\n'
    put sys/devices/system/node/online '0\n'
    put sys/kernel/mm/transparent_hugepage/enabled 'always [madvise] never\n'
    put sys/class/net/lo/operstate 'unknown\n'
    put sys/class/net/eth7/operstate 'up\n'
    put sys/class/net/eth7/speed '25000\n'
    put sys/fs/cgroup/box/cpu.max 'max 100000\n'
    put sys/fs/cgroup/box/memory.max 'max\n'
    put sys/devices/system/clocksource/clocksource0/current_clocksource 'tsc\n'
    mkdir -p "$tree/dev/shm"
}

# limits FILES ADDRESSES
limits() {
    put proc/self/limits "Limit  Soft Limit  Hard Limit  Units\nMax open files  $1  4096  files\n"
    printf 'Max locked memory  65536  65536  bytes\nMax address space  %s  unlimited  bytes\n' "$2" >>"$tree/proc/self/limits"
}

# line STATE CHECK TEXT: the check says so
line() { grep -q "^$1  *$2  *.*$3" out || { cat out; die "no line '$1 $2 … $3'"; }; }

# mended TEXT CHECK: the line below a finding of the check says how
mended() { grep -A 1 "^[a-z]*  *$2 " out | grep -qF "mend: $1" || { cat out; die "$2 is not mended by '$1'"; }; }

# no finding that is good has a line that mends it
no_idle_advice() {
    awk '/^good / { good = 1; next } /mend:/ && good { bad = 1 } { good = 0 } END { exit bad }' out ||
        { cat out; die "what is good is mended"; }
}

doctor() {
    ok doctor --root "$tree" "$@"
    no_idle_advice
}

tree good
doctor
! grep -q mend: out || { cat out; die "a good machine is mended"; }
line good cpu 'Made Up 1: AVX2, AVX-512, bf16; not AMX; --amp bf16 is fast$'
line good cores '4 cores, 4 processors'
line good memory '8.2 GB free of 16.4 GB, limit of the cgroup: unlimited$'
line good network 'eth7 25000 Mbit/s$'
line good devices 'cpu:0-3$'
has out 'recommended: convoy train --model resnet18 --data-path DIR --devices cpu:0-1 --threads-per-device 2'
! grep -q -e 'mpi' -e 'output' out || { cat out; die "this machine is looked at with --root"; }

tree unlimited
limits unlimited unlimited
doctor
line good files 'open files: unlimited$'
grep -v -e recommended -e devices out >said
! grep -qE '(^|[^0-9a-zA-Z])-[0-9]' said || { cat said; die "a number below zero"; }

tree quota
put sys/fs/cgroup/box/cpu.max '150000 100000\n'
put sys/fs/cgroup/box/memory.max '4000000000\n'
doctor
line note cores "the time of 1.5 of 4 cores: 2 threads"
mended 'docker run --cpus=4' cores
line good memory '4.0 GB free of 16.4 GB, limit of the cgroup: 4.0 GB$'
line good devices 'cpu:0-1$'
has out '--devices cpu:0-1 --threads-per-device 1'

tree quota1
put proc/self/cgroup '4:memory:/m\n2:cpu,cpuacct:/c\n'
put sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us '100000\n'
put sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us '100000\n'
put sys/fs/cgroup/memory/m/memory.limit_in_bytes '9223372036854771712\n'
doctor
line note cores 'the time of 1 of 4 cores: 1 thread,'
line good memory 'limit of the cgroup: unlimited$'
line note devices 'one core'
mended '--devices cpu:0-1' devices

tree numa
put sys/devices/system/node/online '0-1\n'
put sys/devices/system/cpu/online '0-7\n'
for pu in 0 1 2 3; do
    put sys/devices/system/cpu/cpu$pu/topology/thread_siblings_list "$pu,$((pu + 4))\n"
    put sys/devices/system/cpu/cpu$((pu + 4))/topology/thread_siblings_list "$pu,$((pu + 4))\n"
done
put proc/self/status 'Cpus_allowed_list:\t0-7\n'
doctor
line good cores '4 cores, 8 processors'
line note numa '2 nodes of memory'
mended '--devices cpu:0-1' numa
put proc/self/status 'Cpus_allowed_list:\t1,4-6\n'
doctor
line note cores 'permits 4 of 8 processors'
mended 'taskset -cp 0-7' cores
line good devices 'up to 3 devices' # 1 and 5 are one core

tree poor
put proc/cpuinfo 'model name\t: Old\nflags\t\t: fpu sse4_1 avx2x\n'
rm -r "$tree/sys/kernel" "$tree/dev/shm"
put sys/class/net/eth7/operstate 'down\n'
put sys/devices/system/clocksource/clocksource0/current_clocksource 'hpet\n'
limits 256 2000000000
doctor
line note cpu 'no AVX2'
line note pages 'no transparent huge pages'
line note shm 'no /dev/shm'
line note memory 'limited to 2.0 GB'
mended 'ulimit -n 4096' files
mended 'sudo ip link set eth7 up' network
mended 'echo tsc' clock
put sys/kernel/mm/transparent_hugepage/enabled 'always madvise [never]\n'
doctor
mended 'echo madvise' pages

# what is bad: exit code 5, the reason last
put proc/meminfo 'MemTotal:       16000000 kB\nMemAvailable:   1000 kB\n'
limits 16 unlimited
fails 5 'not fit, see above: memory, files' doctor --root "$tree"
line bad memory '1 MB free'
no_idle_advice
fails 5 'not fit' doctor --root "$tree" --json
"$CONVOY" doctor --root "$tree" --json 2>err | python3 -c '
import json, sys
doc = json.load(sys.stdin)
said = {f["check"]: f for f in doc["findings"]}
assert said["memory"]["state"] == "bad" and said["memory"]["mend"], said
assert said["cores"]["state"] == "good" and said["cores"]["mend"] is None, said
assert doc["recommended"].startswith("convoy train "), doc' || die "not that JSON"

# this machine itself, whatever it is
"$CONVOY" doctor --quick >out 2>err
rc=$?
[ $rc -eq 0 ] || [ $rc -eq 5 ] || { cat out err; die "exit code $rc"; }
line '[a-z]*' output 'free'
no_idle_advice
fails 5 'not fit, see above: output' doctor --quick --output-dir /proc/none/there
fails 2 'unknown flag --rooot' doctor --rooot x
ok doctor hello
has out '1 process met'
ok doctor --help
has out 'Exit code: 5'

# the self-tests; without mpirun, which is another's affair
PATH=/nowhere "$CONVOY" doctor --devices cpu:0-1 --data digits --json >out 2>err
rc=$?
[ $rc -eq 0 ] || [ $rc -eq 5 ] || { cat out err; die "exit code $rc"; }
python3 -c '
import json
doc = json.load(open("out"))
said = [f["text"] for f in doc["findings"] if f["check"] == "speed"]
assert len(said) == 3 and "cpu:0 and cpu:1 add up right" in said[2], said
names = ["loader images/s", "cpu:0 cpu:1 all-reduce GB/s"]
for a in 0, 1:
    names += [f"cpu:{a} {what}" for what in ("convolutions GFLOP/s", "products GFLOP/s", "memory GB/s")]
assert sorted(names) == sorted(doc["measured"]), doc["measured"]
assert all(v > 0 for v in doc["measured"].values()), doc["measured"]' || { cat out err; die "not those numbers"; }
if [ -z "${SANITIZE:-}" ]; then # with one, additions in software queues take seconds
    PATH=/nowhere "$CONVOY" doctor --devices async:0-2 >out 2>err
    line '[a-z]*' speed 'async:2, all at work: convolutions [0-9]* GFLOP/s'
    line good speed '3 pairs of devices add up right'
fi
PATH=/nowhere "$CONVOY" doctor --devices cpu:0 --data folder:none >out 2>err
same $? 3 "the exit code where the data are missing"
has err 'convoy: error: none'
fails 2 '--quick measures nothing, and --data says what to measure' doctor --quick --data digits
fails 2 '--quick measures nothing, and --devices says what to measure' doctor --quick --devices cpu:0
"$CONVOY" doctor --quick >out 2>err
! grep -q -e '^[a-z]* *speed' -e '^[a-z]* *loader' out || { cat out; die "--quick measures"; }

# cores are counted as the devices of training are made, unless GPUs are recommended instead
ok devices
threads=$(sed -n 's/^cpu:0 .*cpu:0: \([0-9]*\) threads\{0,1\} .*/\1/p' out)
[ -n "$threads" ] || { cat out; die "convoy devices tells no threads"; }
"$CONVOY" doctor --quick >out 2>err
cores=$(sed -n -e 's/^good  *devices  *up to \([0-9]*\) devices with a core each.*/\1/p' \
    -e 's/^note  *devices  *one core,.*/1/p' out)
[ -z "$cores" ] || same "$cores" "$threads" "the cores that doctor counts"
