/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD under which the n-th call that has to do with files fails. It counts calls on files below one
 * folder only, so that the loader and the C library stay as they are. Environment:
 *
 *     FAULT_FOLDER  the folder: names below it, and what was opened by such a name
 *     FAULT_AT      which call fails, from 1; absent or 0: none
 *     FAULT_KIND    "EIO", "ENOSPC", "EINTR", "EACCES", "EDQUOT", "EROFS", "EMFILE", "ENOMEM": that call fails so;
 *                   "full": writing calls fail with ENOSPC from there on; "short": reads and writes do one byte;
 *                   "kill": SIGKILL before it; "int": SIGINT before it
 *     FAULT_LOG     a file that gets a line for each counted call: "name path", with " FAULT" where it failed
 *
 * EINTR is for calls that may give it, "short" for those that count bytes; others of that number go through. */
// Headers that check sizes define some of these functions, too.
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MAX_DESCRIPTORS = 1024 };

enum { MAY_BE_SHORT = 1, MAY_BE_INTERRUPTED = 2, WRITES = 4 };

static char *names[MAX_DESCRIPTORS]; /* of what was opened below the folder */
static atomic_long calls;

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

#define REAL(name)                      \
  static __typeof__(&name) real_##name; \
  if (!real_##name) *(void **)&real_##name = real(#name)

static int number_of(const char *kind) {
  static const struct {
    const char *name;
    int number;
  } known[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EINTR", EINTR},   {"EACCES", EACCES},
               {"EDQUOT", EDQUOT}, {"EROFS", EROFS},   {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp(known[i].name, kind) == 0) return known[i].number;
  return 0;
}

static void note(const char *call, const char *path, bool fails) {
  static int log = -2;
  char line[PATH_MAX + 64];
  int length;
  if (log == -2) {
    const char *name = getenv("FAULT_LOG");
    log = name ? (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
  }
  if (log < 0) return;
  length = snprintf(line, sizeof line, "%s %s%s\n", call, path, fails ? " FAULT" : "");
  if (length > 0) syscall(SYS_write, log, line, (size_t)length);
}

typedef enum verdict { GOES_ON, FAILS, IS_SHORT } verdict;

/* What becomes of this call; errno is set where it fails. */
static verdict judge(const char *call, const char *path, int traits) {
  const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND");
  const long number = atomic_fetch_add(&calls, 1) + 1, wanted = at ? atol(at) : 0;
  bool hit = wanted > 0 && number == wanted;
  verdict result = GOES_ON;
  if (kind && strcmp(kind, "full") == 0) {
    hit = wanted > 0 && number >= wanted && (traits & WRITES);
    result = FAILS;
    errno = ENOSPC;
  } else if (hit && strcmp(kind, "short") == 0) {
    result = traits & MAY_BE_SHORT ? IS_SHORT : GOES_ON;
  } else if (hit && strcmp(kind, "EINTR") == 0 && !(traits & MAY_BE_INTERRUPTED)) {
    result = GOES_ON;
  } else if (hit && number_of(kind)) {
    result = FAILS;
    errno = number_of(kind);
  }
  note(call, path, hit);
  if (hit && strcmp(kind, "kill") == 0) raise(SIGKILL);
  if (hit && strcmp(kind, "int") == 0) raise(SIGINT);
  return hit ? result : GOES_ON;
}

/* The whole name where it is below the folder, "" where it is not. */
static const char *below(int folder, const char *path, char whole[PATH_MAX]) {
  const char *root = getenv("FAULT_FOLDER");
  const size_t length = root ? strlen(root) : 0;
  whole[0] = '\0';
  if (length == 0 || !path) return whole;
  if (*path == '/' || folder != AT_FDCWD) {
    snprintf(whole, PATH_MAX, "%s", path);
  } else {
    char here[PATH_MAX];
    if (syscall(SYS_getcwd, here, sizeof here) < 0) return whole;
    snprintf(whole, PATH_MAX, "%.2000s/%.2000s", here, path);
  }
  if (strncmp(whole, root, length) != 0) whole[0] = '\0';
  return whole;
}

static const char *name_of(int fd) { return fd >= 0 && fd < MAX_DESCRIPTORS && names[fd] ? names[fd] : ""; }

static void remember(int fd, const char *path) {
  if (fd < 0 || fd >= MAX_DESCRIPTORS) return;
  free(names[fd]);
  names[fd] = *path ? strdup(path) : NULL;
}

/* A call on a name, on a descriptor, or on none of ours: it goes through. */
#define ON_NAME(call, folder, path, traits, failed) \
  char whole[PATH_MAX];                             \
  if (*below(folder, path, whole) && judge(#call, whole, (traits)) == FAILS) return failed
#define ON_DESCRIPTOR(call, fd, traits)                                \
  const char *const name = name_of(fd);                                \
  const verdict fate = *name ? judge(#call, name, (traits)) : GOES_ON; \
  if (fate == FAILS) return -1

#define OPENING(flags) ((((flags) & (O_WRONLY | O_RDWR)) ? WRITES : 0) | MAY_BE_INTERRUPTED)

#define MODE(flags)                      \
  mode_t mode = 0;                       \
  if ((flags) & (O_CREAT | O_TMPFILE)) { \
    va_list more;                        \
    va_start(more, flags);               \
    mode = va_arg(more, mode_t);         \
    va_end(more);                        \
  }

#define OPEN(call)                                     \
  int call(const char *path, int flags, ...) {         \
    MODE(flags)                                        \
    REAL(call);                                        \
    ON_NAME(call, AT_FDCWD, path, OPENING(flags), -1); \
    const int fd = real_##call(path, flags, mode);     \
    remember(fd, whole);                               \
    return fd;                                         \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(call)                                       \
  int call(int folder, const char *path, int flags, ...) { \
    MODE(flags)                                            \
    REAL(call);                                            \
    ON_NAME(call, folder, path, OPENING(flags), -1);       \
    const int fd = real_##call(folder, path, flags, mode); \
    remember(fd, whole);                                   \
    return fd;                                             \
  }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(call)                                                      \
  FILE *call(const char *path, const char *mode) {                       \
    REAL(call);                                                          \
    ON_NAME(call, AT_FDCWD, path, strchr(mode, 'r') ? 0 : WRITES, NULL); \
    FILE *const file = real_##call(path, mode);                          \
    if (file) remember(fileno(file), whole);                             \
    return file;                                                         \
  }
FOPEN(fopen)
FOPEN(fopen64)

int fclose(FILE *file) {
  const int fd = fileno(file);
  REAL(fclose);
  const char *const name = name_of(fd);
  const verdict fate = *name ? judge("fclose", name, WRITES) : GOES_ON;
  const int error = errno;
  int result;
  remember(fd, "");
  result = real_fclose(file);
  if (fate != FAILS) return result;
  errno = error;
  return EOF;
}

/* The descriptor is gone even where closing it fails. */
int close(int fd) {
  REAL(close);
  const char *const name = name_of(fd);
  const verdict fate = *name ? judge("close", name, MAY_BE_INTERRUPTED | WRITES) : GOES_ON;
  const int error = errno;
  int result;
  remember(fd, "");
  result = real_close(fd);
  if (fate != FAILS) return result;
  errno = error;
  return -1;
}

#define BYTES(call, type, parameters, arguments, traits)                                \
  ssize_t call(int fd, type bytes, size_t count parameters) {                           \
    REAL(call);                                                                         \
    ON_DESCRIPTOR(call, fd, MAY_BE_SHORT | MAY_BE_INTERRUPTED | (traits));              \
    return real_##call(fd, bytes, fate == IS_SHORT && count > 1 ? 1 : count arguments); \
  }
#define NO_MORE
#define AT_OFFSET , off_t offset
#define OFFSET , offset
BYTES(read, void *, NO_MORE, NO_MORE, 0)
BYTES(write, const void *, NO_MORE, NO_MORE, WRITES)
BYTES(pread, void *, AT_OFFSET, OFFSET, 0)
BYTES(pread64, void *, AT_OFFSET, OFFSET, 0)
BYTES(pwrite, const void *, AT_OFFSET, OFFSET, WRITES)
BYTES(pwrite64, const void *, AT_OFFSET, OFFSET, WRITES)

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(writev);
  ON_DESCRIPTOR(writev, fd, MAY_BE_SHORT | MAY_BE_INTERRUPTED | WRITES);
  if (fate == IS_SHORT && count > 0 && parts[0].iov_len > 0) return write(fd, parts[0].iov_base, 1);
  return real_writev(fd, parts, count);
}

#define ON_FD(call, parameters, arguments, traits) \
  int call(int fd parameters) {                    \
    REAL(call);                                    \
    ON_DESCRIPTOR(call, fd, traits);               \
    (void)fate;                                    \
    return real_##call(fd arguments);              \
  }
#define STAT , struct stat *status
#define MODE_OF , mode_t mode
#define LENGTH , off_t length
ON_FD(fsync, NO_MORE, NO_MORE, MAY_BE_INTERRUPTED | WRITES)
ON_FD(fdatasync, NO_MORE, NO_MORE, MAY_BE_INTERRUPTED | WRITES)
#define PASS_STATUS , status
#define PASS_MODE , mode
#define PASS_LENGTH , length
ON_FD(fstat, STAT, PASS_STATUS, 0)
ON_FD(fchmod, MODE_OF, PASS_MODE, WRITES)
ON_FD(ftruncate, LENGTH, PASS_LENGTH, WRITES)

#define ON_PATH(call, parameters, arguments, traits) \
  int call(const char *path parameters) {            \
    REAL(call);                                      \
    ON_NAME(call, AT_FDCWD, path, traits, -1);       \
    return real_##call(path arguments);              \
  }
ON_PATH(stat, STAT, PASS_STATUS, 0)
ON_PATH(lstat, STAT, PASS_STATUS, 0)
#define HOW , int how
#define PASS_HOW , how
ON_PATH(access, HOW, PASS_HOW, 0)
ON_PATH(mkdir, MODE_OF, PASS_MODE, WRITES)
ON_PATH(unlink, NO_MORE, NO_MORE, 0)
#define TO , const char *to
#define PASS_TO , to
ON_PATH(rename, TO, PASS_TO, WRITES)

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *status) {
  REAL(statx);
  ON_NAME(statx, folder, path, 0, -1);
  return real_statx(folder, path, flags, mask, status);
}

ssize_t readlink(const char *path, char *buffer, size_t size) {
  REAL(readlink);
  ON_NAME(readlink, AT_FDCWD, path, 0, -1);
  return real_readlink(path, buffer, size);
}

char *realpath(const char *path, char *resolved) {
  REAL(realpath);
  ON_NAME(realpath, AT_FDCWD, path, 0, NULL);
  return real_realpath(path, resolved);
}

DIR *opendir(const char *path) {
  REAL(opendir);
  ON_NAME(opendir, AT_FDCWD, path, 0, NULL);
  return real_opendir(path);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
  REAL(mmap);
  const char *const name = name_of(fd);
  if (*name && judge("mmap", name, 0) == FAILS) return MAP_FAILED;
  return real_mmap(address, length, protection, flags, fd, offset);
}
