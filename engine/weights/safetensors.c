#include "weights/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The format's own bound on the header; it keeps a hostile length from becoming a huge allocation. */
#define HEADER_MAX 100000000u

struct ms_safetensors {
  char *path;
  int fd;
  char *map;
  size_t map_size;
  json_t *header;                /* owns all names and the metadata */
  struct ms_tensor_view *views;  /* [count] in order of the data */
  struct ms_tensor_view **names; /* [count] in order of the names */
  int count;
};

void ms_safetensors_close(struct ms_safetensors **pointer) {
  struct ms_safetensors *file = *pointer;
  if (!file)
    return;
  *pointer = NULL;
  if (file->map)
    munmap(file->map, file->map_size);
  if (file->fd >= 0)
    close(file->fd);
  json_decref(file->header);
  free(file->views);
  free(file->names);
  free(file->path);
  free(file);
}

static int map_file(struct ms_safetensors *file, struct ms_error *error) {
  struct stat info;
  int code = 0, fd = open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe must not block */
  if (fd < 0 || fstat(fd, &info) < 0) {
    code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": %s", file->path, strerrordesc_np(errno));
  } else if (!S_ISREG(info.st_mode)) {
    code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": it is not a file", file->path);
  } else if (info.st_size < 8) {
    code = ms_error_set(error, MS_EINPUT, "\"%.300s\" is not a safetensors file: it has only %lld bytes",
                        file->path, (long long)info.st_size);
  } else {
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
      code = ms_error_set(error, errno == ENOMEM ? MS_ENOMEM : MS_EINPUT, "cannot map \"%.300s\": %s",
                          file->path, strerrordesc_np(errno));
    } else {
      file->map = map;
      file->map_size = (size_t)info.st_size;
    }
  }
  file->fd = fd;
  return code;
}

static int parse_header(struct ms_safetensors *file, size_t *data_start, struct ms_error *error) {
  json_error_t problem;
  uint64_t length = 0;
  for (int i = 7; i >= 0; i--)
    length = length << 8 | (unsigned char)file->map[i];
  if (length > file->map_size - 8)
    return ms_error_set(error, MS_EINPUT,
                        "\"%.250s\" is cut off or not a safetensors file: its header should have %llu bytes, "
                        "the file has %zu",
                        file->path, (unsigned long long)length, file->map_size);
  if (length > HEADER_MAX)
    return ms_error_set(error, MS_EINPUT,
                        "\"%.300s\" has a header of %llu bytes, more than the %u the format allows",
                        file->path, (unsigned long long)length, HEADER_MAX);
  if (length < 2 || file->map[8] != '{')
    return ms_error_set(error, MS_EINPUT,
                        "\"%.300s\" is not a safetensors file: its header is not a JSON object", file->path);
  file->header = json_loadb(file->map + 8, (size_t)length, JSON_REJECT_DUPLICATES, &problem);
  if (!file->header)
    return ms_error_set(error, MS_EINPUT, "the header of \"%.200s\" is not valid: %s (byte %d)", file->path,
                        problem.text, problem.position);
  *data_start = 8 + (size_t)length;
  return 0;
}

static int bad_tensor(const struct ms_safetensors *file, const char *name, const char *what,
                      struct ms_error *error) {
  return ms_error_set(error, MS_EINPUT, "tensor \"%.100s\" of \"%.250s\": %s", name, file->path, what);
}

static int read_dtype(const char *text, enum ms_dtype *dtype) {
  for (int i = MS_DTYPE_BOOL; i <= MS_DTYPE_U64; i++)
    if (text && !strcmp(text, ms_dtype_name(i))) {
      *dtype = i;
      return 1;
    }
  return 0;
}

static int read_tensor(const struct ms_safetensors *file, const char *name, json_t *entry, size_t data_start,
                       struct ms_tensor_view *view, struct ms_error *error) {
  json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
  const char *dtype = json_string_value(json_object_get(entry, "dtype"));
  json_int_t begin, end;
  size_t data_bytes = file->map_size - data_start;
  int64_t bytes;
  if (!json_is_object(entry))
    return bad_tensor(file, name, "its entry is not an object", error);
  if (!read_dtype(dtype, &view->dtype))
    return ms_error_set(error, MS_EINPUT, "tensor \"%.100s\" of \"%.200s\": unknown type \"%.40s\"", name,
                        file->path, dtype ? dtype : "(none)");
  if (!json_is_array(shape) || json_array_size(shape) > MS_TENSOR_MAX_DIMS)
    return bad_tensor(file, name, "its shape is missing or has more than 8 dimensions", error);
  view->name = name;
  view->ndim = (int)json_array_size(shape);
  view->count = 1;
  for (int i = 0; i < view->ndim; i++) {
    json_t *dim = json_array_get(shape, (size_t)i);
    if (!json_is_integer(dim) || json_integer_value(dim) < 0)
      return bad_tensor(file, name, "a dimension is not a whole number of at least 0", error);
    view->dims[i] = json_integer_value(dim);
    if (__builtin_mul_overflow(view->count, view->dims[i], &view->count))
      return bad_tensor(file, name, "its shape is too large for any memory", error);
  }
  if (__builtin_mul_overflow(view->count, (int64_t)ms_dtype_size(view->dtype), &bytes))
    return bad_tensor(file, name, "its shape is too large for any memory", error);
  if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
      !json_is_integer(json_array_get(offsets, 0)) || !json_is_integer(json_array_get(offsets, 1)))
    return bad_tensor(file, name, "data_offsets are not two whole numbers", error);
  begin = json_integer_value(json_array_get(offsets, 0));
  end = json_integer_value(json_array_get(offsets, 1));
  if (begin < 0 || end < begin)
    return bad_tensor(file, name, "data_offsets are negative or in the wrong order", error);
  if ((uint64_t)end > data_bytes)
    return ms_error_set(
        error, MS_EINPUT,
        "tensor \"%.100s\" of \"%.200s\": its data ends at byte %lld of %zu; the file is cut off or damaged",
        name, file->path, (long long)end, data_bytes);
  if (end - begin != bytes)
    return ms_error_set(error, MS_EINPUT,
                        "tensor \"%.100s\" of \"%.200s\": its shape needs %lld bytes, it has %lld", name,
                        file->path, (long long)bytes, (long long)(end - begin));
  view->bytes = (size_t)bytes;
  view->data = file->map + data_start + begin;
  return 0;
}

static int by_place(const void *a, const void *b) {
  const struct ms_tensor_view *x = a, *y = b;
  if (x->data != y->data)
    return (const char *)x->data < (const char *)y->data ? -1 : 1;
  if (x->bytes != y->bytes)
    return x->bytes < y->bytes ? -1 : 1;
  return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
  const struct ms_tensor_view *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static int name_is(const void *key, const void *element) {
  const struct ms_tensor_view *const *view = element;
  return strcmp(key, (*view)->name);
}

/* The format wants the data covered exactly: no byte twice, none unused. */
static int check_cover(const struct ms_safetensors *file, size_t data_start, struct ms_error *error) {
  const char *at = file->map + data_start;
  for (int i = 0; i < file->count; i++) {
    const struct ms_tensor_view *view = &file->views[i];
    if ((const char *)view->data < at)
      return bad_tensor(file, view->name, "its data overlaps another tensor's", error);
    if ((const char *)view->data > at)
      return bad_tensor(file, view->name, "unused bytes lie before its data; the file is damaged", error);
    at += view->bytes;
  }
  if (at != file->map + file->map_size)
    return ms_error_set(error, MS_EINPUT,
                        "\"%.300s\" has %zu bytes after its last tensor; the file is damaged", file->path,
                        (size_t)(file->map + file->map_size - at));
  return 0;
}

static int check_metadata(const struct ms_safetensors *file, struct ms_error *error) {
  json_t *metadata = json_object_get(file->header, "__metadata__"), *value;
  const char *key;
  if (metadata && !json_is_object(metadata))
    return ms_error_set(error, MS_EINPUT, "the metadata of \"%.300s\" is not an object", file->path);
  json_object_foreach(metadata, key, value) {
    if (!json_is_string(value))
      return ms_error_set(error, MS_EINPUT, "the metadata \"%.100s\" of \"%.300s\" is not a text", key,
                          file->path);
  }
  return 0;
}

static int read_tensors(struct ms_safetensors *file, size_t data_start, struct ms_error *error) {
  size_t entries = json_object_size(file->header);
  const char *name;
  json_t *entry;
  file->views = calloc(entries + 1, sizeof *file->views);
  file->names = calloc(entries + 1, sizeof *file->names);
  if (!file->views || !file->names)
    return ms_error_set(error, MS_ENOMEM, "cannot read \"%.300s\": out of memory for %zu tensors", file->path,
                        entries);
  json_object_foreach(file->header, name, entry) {
    int code;
    if (!strcmp(name, "__metadata__"))
      continue;
    code = read_tensor(file, name, entry, data_start, &file->views[file->count], error);
    if (code < 0)
      return code;
    file->count++;
  }
  qsort(file->views, (size_t)file->count, sizeof *file->views, by_place);
  for (int i = 0; i < file->count; i++)
    file->names[i] = &file->views[i];
  qsort(file->names, (size_t)file->count, sizeof *file->names, by_name);
  return check_cover(file, data_start, error);
}

int ms_safetensors_open(struct ms_safetensors **out, const char *path, struct ms_error *error) {
  struct ms_safetensors *file = calloc(1, sizeof *file);
  size_t data_start = 0;
  int code = 0;
  *out = NULL;
  if (file) {
    file->fd = -1;
    file->path = strdup(path);
  }
  if (!file || !file->path)
    code = ms_error_set(error, MS_ENOMEM, "cannot read \"%.300s\": out of memory", path);
  if (code == 0)
    code = map_file(file, error);
  if (code == 0)
    code = parse_header(file, &data_start, error);
  if (code == 0)
    code = check_metadata(file, error);
  if (code == 0)
    code = read_tensors(file, data_start, error);
  if (code < 0)
    ms_safetensors_close(&file);
  *out = file;
  return code;
}

int ms_safetensors_count(const struct ms_safetensors *file) {
  return file->count;
}

const struct ms_tensor_view *ms_safetensors_at(const struct ms_safetensors *file, int i) {
  return &file->views[i];
}

const struct ms_tensor_view *ms_safetensors_find(const struct ms_safetensors *file, const char *name) {
  struct ms_tensor_view **found =
      bsearch(name, file->names, (size_t)file->count, sizeof *file->names, name_is);
  return found ? *found : NULL;
}

const char *ms_safetensors_metadata(const struct ms_safetensors *file, const char *key) {
  return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

const char *ms_safetensors_path(const struct ms_safetensors *file) {
  return file->path;
}

int ms_safetensors_read(const struct ms_safetensors *file, const struct ms_tensor_view *view, int64_t begin,
                        int64_t count, void *out, struct ms_error *error) {
  size_t size = ms_dtype_size(view->dtype), bytes = (size_t)count * size;
  off_t at = (const char *)view->data - file->map + begin * (int64_t)size;
  for (size_t done = 0; done < bytes;) {
    /* the kernel reads at most 2 GiB in one call */
    size_t part = bytes - done < (size_t)1 << 30 ? bytes - done : (size_t)1 << 30;
    ssize_t n = pread(file->fd, (char *)out + done, part, at + (off_t)done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": %s", file->path,
                          n < 0 ? strerrordesc_np(errno) : "it became shorter");
    done += (size_t)n;
  }
  return 0;
}

void ms_safetensors_forget(const struct ms_tensor_view *view) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)view->data, end = begin + view->bytes;
  begin = (begin + page - 1) / page * page; /* whole pages only: the others hold neighbours */
  end = end / page * page;
  if (begin < end)
    madvise((void *)begin, end - begin, MADV_DONTNEED);
}
