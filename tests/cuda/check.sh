# convoy check --backend cuda on the stand-in: every operator has a kernel of the plugin's, and each passes.
if [ ! -f "$BUILD/fakecuda/libconvoy_cuda.so" ]; then
    echo "skipped: the CUDA plugin was not built, since there is no CUDA toolkit"
    exit 77
fi
export CONVOY_PLUGINS="$BUILD/fakecuda"
set -e

"$CONVOY" check --backend cuda > table || { grep -v 'ok$' table; exit 1; }
# operators in the table: all but collectives and views, which no kernel runs
"$CONVOY" check --backend cpu | awk 'NR > 1 { print $1 }' > all
awk 'NR > 1 && $3 == "native" && $NF == "ok" { print $1 }' table > native
test "$(wc -l < all)" -ge 38
diff all native
