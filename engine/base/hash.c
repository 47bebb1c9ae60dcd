#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRIME 0x100000001b3u
#define PIECE ((size_t)1 << 20)

uint64_t ms_hash_bytes(uint64_t hash, const void *data, size_t size) {
  const unsigned char *at = data;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    hash = (hash ^ word) * PRIME;
    hash ^= hash >> 29;
  }
  for (; size; at++, size--)
    hash = (hash ^ *at) * PRIME;
  return hash;
}

uint64_t ms_hash_block(const void *data, size_t size) {
  const unsigned char *at = data;
  uint64_t chains[4] = {MS_HASH_START, MS_HASH_START ^ 1, MS_HASH_START ^ 2, MS_HASH_START ^ 3};
  for (; size >= 32; at += 32, size -= 32) {
    uint64_t words[4];
    memcpy(words, at, 32);
    for (int i = 0; i < 4; i++) {
      chains[i] = (chains[i] ^ words[i]) * PRIME;
      chains[i] ^= chains[i] >> 29;
    }
  }
  return ms_hash_bytes(ms_hash_bytes(MS_HASH_START, chains, sizeof chains), at, size);
}

uint64_t ms_hash_text(uint64_t hash, const char *text) {
  return ms_hash_bytes(hash, text, strlen(text) + 1);
}

int ms_hash_file(const char *path, uint64_t *hash, struct ms_error *error) {
  FILE *file = fopen(path, "rbe");
  char *piece = malloc(PIECE);
  size_t n;
  int code = 0;
  *hash = MS_HASH_START;
  if (!piece)
    code = ms_error_set(error, MS_ENOMEM, "out of memory");
  else if (!file)
    code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": %s", path, strerrordesc_np(errno));
  while (code == 0 && (n = fread(piece, 1, PIECE, file)) > 0)
    *hash = ms_hash_bytes(*hash, piece, n);
  if (code == 0 && ferror(file))
    code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": read error", path);
  if (file)
    fclose(file);
  free(piece);
  return code;
}

const char *ms_hash_format(uint64_t hash, char text[17]) {
  snprintf(text, 17, "%016" PRIx64, hash);
  return text;
}
