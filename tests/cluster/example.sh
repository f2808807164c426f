# examples/distributed.c as 1, 2 and 4 processes under each MPI library: rank 0 alone speaks and saves, and all numbers
# of processes end with the same weights.
set -eu

example=$BUILD/example_distributed
[ "$SANITIZE" != thread ] || { echo "skipped: ThreadSanitizer cannot see into the MPI libraries"; exit 77; }

"$example" >alone
cat alone
grep -q '^1 process; this one reads 32 of' alone
mv digits.safetensors alone.safetensors
sed 1d alone >expected # losses, top-1 and the weights' hash
test "$(grep -c '^weights [0-9a-f]\{16\}$' expected)" -eq 1

n_runs=0
for library in openmpi mpich; do
    [ -e "$BUILD/libconvoy_mpi_$library.so" ] && command -v "mpirun.$library" >/dev/null || continue
    for n in 2 4; do
        rm -f digits.safetensors
        "$SOURCE/tests/with_mpirun" "$library" "$n" "$example" >together 2>err || { cat together err; exit 1; }
        grep -q "^$n processes; this one reads $((32 / n)) of each" together
        sed 1d together | diff expected -
        cmp digits.safetensors alone.safetensors
        n_runs=$((n_runs + 1))
    done
done
[ $n_runs -gt 0 ] || { echo "skipped: no MPI library is installed, neither Open MPI nor MPICH"; exit 77; }
