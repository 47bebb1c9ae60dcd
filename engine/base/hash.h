/* A fast hash of bytes, against files that a crash or a bad disk changed; not against an enemy.
 *
 * FNV-1a (Fowler, Noll, Vo) over words of eight bytes with a shift that mixes the high bits down, the rest
 * byte by byte. Pieces may be hashed one after the other, but where the pieces end is part of the result. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "ms-error.h"

#define MS_HASH_START 0xcbf29ce484222325u

uint64_t ms_hash_bytes(uint64_t hash, const void *data, size_t size);
/* A hash of a large block, as fast as memory: four such chains side by side, over every fourth word, and then
 * one over the four. Not the value of ms_hash_bytes. */
uint64_t ms_hash_block(const void *data, size_t size);
/* Of a text with its end, so that "ab", "c" and "a", "bc" differ. */
uint64_t ms_hash_text(uint64_t hash, const char *text);
/* Of a file's contents into *hash. MS_EINPUT, MS_ENOMEM. */
int ms_hash_file(const char *path, uint64_t *hash, struct ms_error *error);
/* 16 hexadecimal digits into text (17 bytes); returns text. */
const char *ms_hash_format(uint64_t hash, char text[17]);
