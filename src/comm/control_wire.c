/* Messages of the control connection to bytes and back. Pure functions; the way back trusts nothing. */
#include "comm/control_wire.h"

#include "base/text.h"

#include <string.h>

static const unsigned char magic[4] = {'c', 'v', 'y', '1'};

static void put_u32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static uint32_t get_u32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

size_t cvy_control_encode(const struct cvy_control_message *message, unsigned char out[CVY_CONTROL_FRAME]) {
    char text[CVY_CONTROL_TEXT + 1];
    size_t length = cvy_text_line(text, sizeof text, message->text);
    memcpy(out, magic, sizeof magic);
    put_u32(out + 4, (uint32_t)message->type);
    put_u32(out + 8, (uint32_t)message->rank);
    put_u32(out + 12, (uint32_t)message->group);
    put_u32(out + 16, (uint32_t)(message->sequence >> 32));
    put_u32(out + 20, (uint32_t)message->sequence);
    put_u32(out + 24, (uint32_t)length);
    memcpy(out + CVY_CONTROL_HEADER, text, length);
    return CVY_CONTROL_HEADER + length;
}

/* A text that would come out of cvy_text_line as it is: no NUL, no control character, well-formed. */
static bool is_line(const unsigned char *bytes, size_t length, char out[CVY_CONTROL_TEXT + 1]) {
    char raw[CVY_CONTROL_TEXT + 1];
    memcpy(raw, bytes, length);
    raw[length] = '\0';
    cvy_text_line(out, CVY_CONTROL_TEXT + 1, raw);
    return strlen(raw) == length && strcmp(raw, out) == 0;
}

ssize_t cvy_control_decode(const unsigned char *bytes, size_t n, struct cvy_control_message *out) {
    if (memcmp(bytes, magic, n < sizeof magic ? n : sizeof magic) != 0)
        return -1;
    if (n < CVY_CONTROL_HEADER)
        return 0;
    uint32_t type = get_u32(bytes + 4), rank = get_u32(bytes + 8), group = get_u32(bytes + 12);
    uint32_t length = get_u32(bytes + 24);
    if (type < 1 || type > CVY_CONTROL_MAX_TYPE || rank >= CVY_CONTROL_MAX_RANK || length > CVY_CONTROL_TEXT)
        return -1;
    if (group > INT32_MAX && group != UINT32_MAX)
        return -1;
    if (n < CVY_CONTROL_HEADER + length)
        return 0;
    out->type = (enum cvy_control_type)type;
    out->rank = (int32_t)rank;
    out->group = group == UINT32_MAX ? -1 : (int32_t)group;
    out->sequence = (uint64_t)get_u32(bytes + 16) << 32 | get_u32(bytes + 20);
    if (!is_line(bytes + CVY_CONTROL_HEADER, length, out->text))
        return -1;
    return (ssize_t)(CVY_CONTROL_HEADER + length);
}
