/* Profiles made up for tests, whose times can be worked out by hand: profile.json in memory. */
#ifndef CVY_ENGINE_MADE_PROFILE_H
#define CVY_ENGINE_MADE_PROFILE_H

#include "engine/faults.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/* One process, one thread a device, batches of 64 of 65536 images, usual buckets; the step takes nothing yet. */
static inline json_t *made_profile(const char *strategy, int shards) {
    json_t *root = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:i, s:b}",
        "version", 1, "model", "net", "data", "made", "strategy", strategy, "device_list", "cpu", "images",
        65536, "batch_size", 64, "accumulate", 1, "shards", shards, "threads", 1, "processes", 1, "workers",
        2, "cores", 4, "steps", 10, "bucket_mb", 25.0, "first_bucket_mb", 1.0, "device_memory", 0,
        "has_streams", 0);
    assert_non_null(root);
    assert_int_equal(json_object_set_new(root, "devices", json_array()), 0);
    return root;
}

static inline void made_number(json_t *root, const char *key, double value) {
    assert_int_equal(json_object_set_new(root, key, json_real(value)), 0);
}

static inline void made_times(json_t *root, double wait_us, double span_us, double host_us) {
    made_number(root, "wait_us", wait_us);
    made_number(root, "span_us", span_us);
    made_number(root, "step_us", wait_us + span_us + host_us);
}

/* cpu:0, cpu:1, …; the root's. */
static inline json_t *made_device(json_t *root, int stage, int replica, double cost) {
    json_t *devices = json_object_get(root, "devices");
    char name[16];
    snprintf(name, sizeof name, "cpu:%zu", json_array_size(devices));
    json_t *device =
        json_pack("{s:s, s:i, s:i, s:i, s:f, s:[], s:[], s:[]}", "name", name, "process", 0, "stage", stage,
                  "replica", replica, "cost", cost, "operators", "bucket_bytes", "instructions");
    assert_non_null(device);
    assert_int_equal(json_array_append_new(devices, device), 0);
    return device;
}

static inline void made_instr(json_t *device, const char *what, const char *phase, const int numbers[3],
                              double us) {
    json_t *instr = json_pack("{s:s, s:s, s:i, s:i, s:i, s:f}", "do", what, "phase", phase, "shard",
                              numbers[0], "part", numbers[1], "bucket", numbers[2], "us", us);
    assert_int_equal(json_array_append_new(json_object_get(device, "instructions"), instr), 0);
}

/* Both passes of a shard: us and twice that. */
static inline void made_passes(json_t *device, int shard, double us) {
    made_instr(device, "run", "forward", (const int[]){shard, 0, -1}, us);
    made_instr(device, "run", "backward", (const int[]){shard, 0, -1}, 2 * us);
}

/* An all-reduce of a bucket: 1 us to hand it in, then the wait. */
static inline void made_bucket(json_t *device, int bucket, double bytes, double us) {
    assert_int_equal(json_array_append_new(json_object_get(device, "bucket_bytes"), json_real(bytes)), 0);
    made_instr(device, "reduce", "forward", (const int[]){-1, -1, bucket}, 1);
    made_instr(device, "wait", "forward", (const int[]){-1, -1, bucket}, us);
}

static inline void made_update(json_t *device, double us) {
    made_instr(device, "update", "update", (const int[]){-1, -1, 0}, us);
}

static inline void made_operator(json_t *device, const char *name, double us, double calls) {
    json_t *op = json_pack("{s:s, s:f, s:f}", "name", name, "us", us, "calls", calls);
    assert_int_equal(json_array_append_new(json_object_get(device, "operators"), op), 0);
}

/* Two stages, which take 3 a and 3 b us for both passes of each shard: all forward passes, then all backward ones. */
static inline void made_pipeline(json_t *root, int n_shards, const double us[2], const double cost[2]) {
    for (int stage = 0; stage < 2; stage++) {
        json_t *device = made_device(root, stage, 0, cost[stage]);
        for (int s = 0; s < n_shards; s++) {
            if (stage == 1)
                made_instr(device, "recv", "forward", (const int[]){s, 0, -1}, 0);
            made_instr(device, "run", "forward", (const int[]){s, 0, -1}, us[stage]);
            if (stage == 0)
                made_instr(device, "send", "forward", (const int[]){s, 1, -1}, 0);
        }
        for (int s = 0; s < n_shards; s++) {
            if (stage == 0)
                made_instr(device, "recv", "backward", (const int[]){s, 1, -1}, 0);
            made_instr(device, "run", "backward", (const int[]){s, 0, -1}, 2 * us[stage]);
            if (stage == 1)
                made_instr(device, "send", "backward", (const int[]){s, 0, -1}, 0);
        }
    }
}

#endif
