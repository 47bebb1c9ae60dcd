#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media/encoder-parts.h"

struct ms_frames {
  char *path, *part;
  int folder; /* descriptor of part, locked; -1: none of ours */
  AVCodecContext *encoder;
  AVFrame *frame;
  AVPacket *packet;
  int64_t written;
  int committed;
};

static int is_frame_name(const char *name) { /* 00001.png: five digits or more */
  size_t digits = 0;
  while (isdigit((unsigned char)name[digits]))
    digits++;
  return digits >= 5 && !strcmp(name + digits, ".png");
}

/* Whether the folder holds nothing but numbered frames; with `remove` it deletes those. */
static int only_frames(const char *path, int delete) {
  DIR *dir = opendir(path);
  struct dirent *entry;
  int only = dir != NULL;
  while (dir && (entry = readdir(dir))) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
      continue;
    if (!is_frame_name(entry->d_name))
      only = 0;
    else if (delete)
      unlinkat(dirfd(dir), entry->d_name, 0);
  }
  if (dir)
    closedir(dir);
  return only;
}

/* What is at path may be replaced if it is a file, or a folder of frames like the one to be written. */
static int check_target(const char *path, struct ms_error *error) {
  struct stat info;
  if (stat(path, &info) < 0 || S_ISREG(info.st_mode))
    return 0;
  if (!S_ISDIR(info.st_mode))
    return ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": it is a device or the like", path);
  if (!only_frames(path, 0))
    return ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": it is a folder that holds other files",
                        path);
  return 0;
}

static int make_part(struct ms_frames *frames, struct ms_error *error) {
  int code = check_target(frames->path, error), number;
  if (code < 0)
    return code;
  if (mkdir(frames->part, 0777) < 0 && errno != EEXIST) {
    number = errno;
    if (number == ENOENT)
      return ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": its folder does not exist",
                          frames->path);
    return ms_media_failed(frames->path, AVERROR(number), error);
  }
  frames->folder = open(frames->part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (frames->folder < 0)
    return ms_media_failed(frames->path, AVERROR(errno), error);
  if (flock(frames->folder, LOCK_EX | LOCK_NB) < 0) {
    close(frames->folder);
    frames->folder = -1;
    return ms_error_set(error, MS_EOUTPUT,
                        "cannot write \"%.200s\": another program is writing it (\"%.200s\" is in use)",
                        frames->path, frames->part);
  }
  if (!only_frames(frames->part, 1)) /* what a killed program left goes; what somebody put there does not */
    return ms_error_set(error, MS_EOUTPUT, "cannot write \"%.200s\": the folder \"%.200s\" holds other files",
                        frames->path, frames->part);
  return 0;
}

static int make_frames(struct ms_frames **out, const char *path, struct ms_error *error) {
  struct ms_frames *frames = calloc(1, sizeof *frames);
  int code;
  *out = NULL;
  if (!frames)
    return ms_media_failed(path, AVERROR(ENOMEM), error);
  frames->folder = -1;
  frames->path = strdup(path);
  frames->part = malloc(strlen(path) + sizeof ".part");
  if (frames->path && frames->part) {
    sprintf(frames->part, "%s.part", path);
    code = make_part(frames, error);
  } else {
    code = ms_media_failed(path, AVERROR(ENOMEM), error);
  }
  if (code < 0)
    ms_frames_close(&frames);
  *out = frames;
  return code;
}

void ms_frames_close(struct ms_frames **pointer) {
  struct ms_frames *frames = *pointer;
  if (!frames)
    return;
  *pointer = NULL;
  if (frames->folder >= 0) {
    if (!frames->committed && only_frames(frames->part, 1))
      rmdir(frames->part);
    close(frames->folder);
  }
  avcodec_free_context(&frames->encoder);
  av_frame_free(&frames->frame);
  av_packet_free(&frames->packet);
  free(frames->path);
  free(frames->part);
  free(frames);
}

static int put_file(const struct ms_frames *frames, const char *name, const void *data, size_t size) {
  int fd = openat(frames->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), number = 0;
  if (fd < 0)
    return errno;
  while (size && !number) {
    ssize_t n = write(fd, data, size);
    if (n > 0) {
      data = (const char *)data + n;
      size -= (size_t)n;
    } else if (n == 0 || errno != EINTR) {
      number = n ? errno : ENOSPC;
    }
  }
  if (!number && fsync(fd) < 0)
    number = errno;
  if (close(fd) < 0 && !number)
    number = errno;
  return number;
}

int ms_frames_check(const char *path, struct ms_error *error) {
  static const char probe[65536];
  struct ms_frames *frames;
  int code = make_frames(&frames, path, error), number;
  if (code < 0)
    return code;
  number = put_file(frames, "00000.png", probe, sizeof probe);
  if (number)
    code = ms_media_failed(path, AVERROR(number), error);
  ms_frames_close(&frames);
  return code;
}

int ms_frames_open(struct ms_frames **out, const char *path, int width, int height, struct ms_error *error) {
  const AVCodec *codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
  struct ms_frames *frames;
  int code = ms_frames_check(path, error);
  *out = NULL;
  if (code == 0)
    code = make_frames(&frames, path, error);
  if (code < 0)
    return code;
  frames->encoder = avcodec_alloc_context3(codec);
  frames->frame = av_frame_alloc();
  frames->packet = av_packet_alloc();
  if (!frames->encoder || !frames->frame || !frames->packet) {
    code = ms_media_failed(path, AVERROR(ENOMEM), error);
    goto fail;
  }
  frames->encoder->width = frames->frame->width = width;
  frames->encoder->height = frames->frame->height = height;
  frames->encoder->pix_fmt = AV_PIX_FMT_RGB24;
  frames->frame->format = AV_PIX_FMT_RGB24;
  frames->encoder->time_base = (AVRational){1, 24}; /* PNG has no time, libavcodec insists on one */
  frames->encoder->thread_count = 1;
  frames->encoder->flags |= AV_CODEC_FLAG_BITEXACT;
  frames->encoder->color_primaries = frames->frame->color_primaries = AVCOL_PRI_BT709;
  frames->encoder->color_trc = frames->frame->color_trc = AVCOL_TRC_IEC61966_2_1; /* becomes the sRGB chunk */
  if (avcodec_open2(frames->encoder, codec, NULL) < 0) {
    code =
        ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": the PNG encoder does not start for %dx%d",
                     path, width, height);
    goto fail;
  }
  if (av_frame_get_buffer(frames->frame, 0) < 0) {
    code = ms_media_failed(path, AVERROR(ENOMEM), error);
    goto fail;
  }
  *out = frames;
  return 0;
fail:
  ms_frames_close(&frames);
  return code;
}

int ms_frames_write(struct ms_frames *frames, const uint8_t *rgb, struct ms_error *error) {
  AVFrame *frame = frames->frame;
  size_t row = (size_t)frame->width * 3;
  char name[32];
  int number;
  for (int y = 0; y < frame->height; y++)
    memcpy(frame->data[0] + (ptrdiff_t)y * frame->linesize[0], rgb + (size_t)y * row, row);
  frame->pts = frames->written;
  number = avcodec_send_frame(frames->encoder, frame);
  if (number >= 0)
    number = avcodec_receive_packet(frames->encoder, frames->packet);
  if (number >= 0) {
    snprintf(name, sizeof name, "%05lld.png", (long long)++frames->written);
    number = AVERROR(put_file(frames, name, frames->packet->data, (size_t)frames->packet->size));
  }
  av_packet_unref(frames->packet);
  return number < 0 ? ms_media_failed(frames->path, number, error) : 0;
}

const char *ms_frames_part(const struct ms_frames *frames) {
  return frames->part;
}

int ms_frames_sync(struct ms_frames *frames, struct ms_error *error) {
  if (fsync(frames->folder) < 0 && errno != EINVAL)
    return ms_media_failed(frames->path, AVERROR(errno), error);
  return 0;
}

static int commit_one(const struct ms_frames *frames) {
  struct stat info;
  if (stat(frames->path, &info) == 0 && S_ISDIR(info.st_mode) &&
      (!only_frames(frames->path, 1) || rmdir(frames->path) < 0))
    return errno;
  if (renameat(frames->folder, "00001.png", AT_FDCWD, frames->path) < 0)
    return errno;
  rmdir(frames->part);
  return 0;
}

static int commit_many(const struct ms_frames *frames) {
  struct stat info;
  if (stat(frames->path, &info) < 0)
    return rename(frames->part, frames->path) < 0 ? errno : 0;
  /* The old one stands until the new one takes its place; then it is what is called PATH.part. */
  if (renameat2(AT_FDCWD, frames->part, AT_FDCWD, frames->path, RENAME_EXCHANGE) < 0)
    return errno;
  if (S_ISDIR(info.st_mode)) {
    only_frames(frames->part, 1);
    rmdir(frames->part);
  } else {
    unlink(frames->part);
  }
  return 0;
}

int ms_frames_commit(struct ms_frames *frames, struct ms_error *error) {
  int code = check_target(frames->path, error), number;
  if (code < 0)
    return code;
  number = frames->written == 1 ? commit_one(frames) : commit_many(frames);
  if (number)
    return ms_media_failed(frames->path, AVERROR(number), error);
  frames->committed = 1;
  return 0;
}
