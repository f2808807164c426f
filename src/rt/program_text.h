/* The text form of a program: the words and tables that its printer and its parser share.

     program device 0 of 2, 2 shards from 0 of 4
     memory persist 4096, packed 0, sum 1024 x 1 (split 2), slot 8192 x 1 (split 2), scratch 640, total 1024, rows 512
     bucket offset 0 floats 150
     partial device 0 first 0 level 1 sum 0
     segment F0/8 forward train stage 0 part 0 shard 8 rule 8
       images f32[8,1,28,28] slot 0 bytes 25088
       conv1.weight f32[6,1,5,5]@Abcd8a persist 0 bytes 800
       port images = images
       conv1 = conv2d(images, conv1.weight, -) kernel=5x5 padding=2x2  ; id 1
     schedule train
       load shard 0 slot 0
       run F0 shard 0 slot 0 sum 0
       run B0.1 shard 0 slot 0 sum 0 wait e2 e3 record e5 stream 1

   One line per operand, operator and instruction. Operators name their operands; a phase stands behind ";" only
   where it is not the segment's. A run names letter (F, B, U, R: the phase), stage and part of its segment, the part
   left out for F0.0; the shard's size finds the one among those of that name. Other fields at -1 are left out, and
   a total and rows of 0 bytes.
   Blanks at the start of a line mean nothing. */
#ifndef CVY_RT_PROGRAM_TEXT_H
#define CVY_RT_PROGRAM_TEXT_H

#include "graph/scan.h"
#include "rt/program.h"

extern const char *const cvy_space_names[CVY_N_SPACES];

struct cvy_field {
    const char *name;
    size_t offset; /* in its struct */
};
enum { CVY_N_SCHEDULES = 7 };
extern const struct cvy_field cvy_schedule_fields[CVY_N_SCHEDULES];

/* As strchr does, it gives writable access to what may be const: printer and parser share it. */
static inline cvy_schedule *cvy_program_schedule(const struct cvy_program *program, int k) {
    return (cvy_schedule *)((char *)program + cvy_schedule_fields[k].offset);
}

void cvy_instr_print(const struct cvy_instr *instr, struct cvy_text *out);
/* The line that the scan stands on, up to its end or what does not belong there. */
cvy_status cvy_instr_parse(struct cvy_scan *scan, struct cvy_instr *out);

#endif
