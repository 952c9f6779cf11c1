/* Preloaded into a process, this sits between it and the disk: below one folder it counts, fails, delays and
 * holds system calls, enforces a quota, and records writes and syncs.
 *
 *   FAULT_DIR      the folder; calls elsewhere go straight through
 *   FAULT_CONTROL  a file of `struct control`, shared with the controlling process (see disk.py)
 *   FAULT_TRACE    a file for the record, or unset
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The fields of disk.py, in its order. */
struct control {
    volatile int64_t records, calls, fail_at, fail_errno, fail_on, kinds, failed_kind, sync_delay_us, hold_syncs,
        syncs_begun, syncs_done, quota_bytes, failed_records;
};

enum { OPEN = 1, READ = 2, WRITE = 4, SYNC = 8, TRUNCATE = 16, NAME = 32, MAP = 64 };
enum { R_CREATE = 1, R_WRITE, R_TRUNCATE, R_SYNC, R_SYNC_FAILED, R_UNLINK, R_RENAME, R_MKDIR };

struct record {
    uint32_t kind, path_bytes;
    uint64_t inode, offset, data_bytes;
};

static struct control *control;
static const char *folder;
static size_t folder_length;
static int trace = -1;
static pthread_mutex_t tracing = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULT_CONTROL");
    folder = getenv("FAULT_DIR");
    if (!path || !folder) return;
    folder_length = strlen(folder);
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *page = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (page == MAP_FAILED) return;
    if ((path = getenv("FAULT_TRACE")))
        trace = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    control = page;
}

static __thread char called_path[PATH_MAX];

static int below(const char *path) {
    if (!control || !path || strncmp(path, folder, folder_length)) return 0;
    if (path[folder_length] && path[folder_length] != '/') return 0;
    strncpy(called_path, path, sizeof called_path - 1);
    return 1;
}

static int file_below(int file) {
    char link[64], path[PATH_MAX];
    if (!control) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path);
}

/* Whether this call is one that fails; then errno is set. */
static int fails(int kind) {
    if (!(control->kinds & kind)) return 0;
    int64_t number = __sync_add_and_fetch(&control->calls, 1);
    if (!control->fail_at || number < control->fail_at || number >= control->fail_at + control->fail_on) return 0;
    if (number == control->fail_at) control->failed_kind = kind;
    if (strstr(called_path, "/records.db") && !strstr(called_path, "/backups/")) control->failed_records |= kind;
    errno = (int)control->fail_errno;
    return 1;
}

static uint64_t inode_of(int file) {
    struct stat info;
    return fstat(file, &info) ? 0 : info.st_ino;
}

static void record(int kind, uint64_t inode, const char *path, size_t path_bytes, uint64_t offset,
                   const void *data, size_t data_bytes) {
    if (trace < 0) return;
    int kept = errno;
    struct record head = {kind, path_bytes, inode, offset, data_bytes};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)path, path_bytes}, {(void *)data, data_bytes}};
    pthread_mutex_lock(&tracing);
    if (syscall(SYS_writev, trace, parts, 3) != (long)(sizeof head + path_bytes + data_bytes)) abort();
    control->records++;
    pthread_mutex_unlock(&tracing);
    errno = kept;
}

static void record_name(int kind, uint64_t inode, const char *path) {
    record(kind, inode, path, strlen(path), 0, NULL, 0);
}

/* --- the quota ------------------------------------------------------------------------------- */

/* By the sizes of files, not by their blocks: some file systems allocate those ahead of a file that grows. */

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static int64_t counted_bytes;

static int count_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)path, (void)at;
    if (kind == FTW_F) counted_bytes += info->st_size;
    return 0;
}

static int64_t free_bytes(void) {
    pthread_mutex_lock(&counting);
    counted_bytes = 0;
    nftw(folder, count_one, 16, FTW_PHYS);
    int64_t left = control->quota_bytes - counted_bytes;
    pthread_mutex_unlock(&counting);
    return left > 0 ? left : 0;
}

static int over_quota(int file, int64_t end) {
    struct stat info;
    if (!control->quota_bytes || fstat(file, &info)) return 0;
    int64_t more = end - info.st_size;
    if (more <= 0 || more <= free_bytes()) return 0;
    errno = ENOSPC;
    return 1;
}

static void lessen(struct statvfs *info) {
    fsblkcnt_t left = free_bytes() / info->f_frsize;
    if (left < info->f_bavail) info->f_bavail = left;
    if (left < info->f_bfree) info->f_bfree = left;
}

int statvfs(const char *path, struct statvfs *info) {
    int result = REAL(statvfs)(path, info);
    if (!result && below(path) && control->quota_bytes) lessen(info);
    return result;
}

int statvfs64(const char *path, struct statvfs64 *info) {
    return statvfs(path, (struct statvfs *)info);
}

/* --- files and their names --------------------------------------------------------------------- */

static void record_opened(int file, const char *path, int existed, int truncated) {
    if (!existed) record_name(R_CREATE, inode_of(file), path);
    else if (truncated) record(R_TRUNCATE, inode_of(file), NULL, 0, 0, NULL, 0);
}

static int open_below(int at, const char *path, int flags, mode_t mode) {
    int existed = !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
    if (fails(OPEN)) return -1;
    int file = syscall(SYS_openat, at, path, flags, mode);
    if (file >= 0 && (flags & (O_CREAT | O_TRUNC))) record_opened(file, path, existed, flags & O_TRUNC);
    return file;
}

#define MODE_OF(flags)                          \
    mode_t mode = 0;                            \
    if ((flags) & (O_CREAT | O_TMPFILE)) {      \
        va_list rest;                           \
        va_start(rest, flags);                  \
        mode = va_arg(rest, mode_t);            \
        va_end(rest);                           \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags)
    if (below(path)) return open_below(AT_FDCWD, path, flags, mode);
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE_OF(flags)
    return open(path, flags | O_LARGEFILE, mode);
}

FILE *fopen(const char *path, const char *how) {
    if (!below(path)) return REAL(fopen)(path, how);
    int existed = !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
    if (fails(OPEN)) return NULL;
    FILE *file = REAL(fopen)(path, how);
    if (file && *how != 'r') record_opened(fileno(file), path, existed, *how == 'w');
    return file;
}

FILE *fopen64(const char *path, const char *how) { return fopen(path, how); }

int mkdir(const char *path, mode_t mode) {
    struct stat info;
    if (!below(path)) return REAL(mkdir)(path, mode);
    if (fails(NAME)) return -1;
    int result = REAL(mkdir)(path, mode);
    if (!result && !stat(path, &info)) record_name(R_MKDIR, info.st_ino, path);
    return result;
}

int unlink(const char *path) {
    if (!below(path)) return REAL(unlink)(path);
    if (fails(NAME)) return -1;
    int result = REAL(unlink)(path);
    if (!result) record_name(R_UNLINK, 0, path);
    return result;
}

int rename(const char *from, const char *to) {
    char both[2 * PATH_MAX];
    if (!below(from)) return REAL(rename)(from, to);
    if (fails(NAME)) return -1;
    int result = REAL(rename)(from, to);
    int length = snprintf(both, sizeof both, "%s%c%s", from, 0, to);
    if (!result) record(R_RENAME, 0, both, length, 0, NULL, 0);
    return result;
}

/* --- contents of files ------------------------------------------------------------------------- */

ssize_t read(int file, void *into, size_t count) {
    if (file_below(file) && fails(READ)) return -1;
    return syscall(SYS_read, file, into, count);
}

ssize_t pread64(int file, void *into, size_t count, off64_t offset) {
    if (file_below(file) && fails(READ)) return -1;
    return syscall(SYS_pread64, file, into, count, offset);
}

ssize_t pread(int file, void *into, size_t count, off_t offset) { return pread64(file, into, count, offset); }

/* A write that fails leaves half of it behind, as disks do. */
static ssize_t write_below(int file, const void *from, size_t count, off64_t offset) {
    if (over_quota(file, offset + count)) return -1;
    int failed = fails(WRITE);
    int cause = errno;
    ssize_t written = syscall(SYS_pwrite64, file, from, failed ? count / 2 : count, offset);
    if (written > 0) record(R_WRITE, inode_of(file), NULL, 0, offset, from, written);
    if (!failed) return written;
    errno = cause;
    return -1;
}

ssize_t pwrite64(int file, const void *from, size_t count, off64_t offset) {
    if (file_below(file)) return write_below(file, from, count, offset);
    return syscall(SYS_pwrite64, file, from, count, offset);
}

ssize_t pwrite(int file, const void *from, size_t count, off_t offset) {
    return pwrite64(file, from, count, offset);
}

ssize_t write(int file, const void *from, size_t count) {
    if (!file_below(file)) return syscall(SYS_write, file, from, count);
    off64_t offset = lseek(file, 0, fcntl(file, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
    ssize_t written = write_below(file, from, count, offset);
    if (written > 0) lseek(file, offset + written, SEEK_SET);
    return written;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    if (!file_below(file)) return syscall(SYS_writev, file, parts, count);
    ssize_t all = 0;
    for (int at = 0; at < count; at++) {
        ssize_t written = write(file, parts[at].iov_base, parts[at].iov_len);
        if (written < 0) return all ? all : -1;
        all += written;
    }
    return all;
}

/* numpy writes arrays this way. */
size_t fwrite(const void *from, size_t size, size_t count, FILE *stream) {
    int file = fileno(stream);
    if (!file_below(file)) return REAL(fwrite)(from, size, count, stream);
    fflush(stream);
    off64_t offset = ftello64(stream);
    ssize_t written = write_below(file, from, size * count, offset);
    if (written < 0) return 0;
    fseeko64(stream, offset + written, SEEK_SET);
    return written / size;
}

int ftruncate64(int file, off64_t length) {
    if (!file_below(file)) return syscall(SYS_ftruncate, file, length);
    if (fails(TRUNCATE)) return -1;
    int result = syscall(SYS_ftruncate, file, length);
    if (!result) record(R_TRUNCATE, inode_of(file), NULL, 0, length, NULL, 0);
    return result;
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

int truncate64(const char *path, off64_t length) {
    struct stat info;
    if (!below(path)) return syscall(SYS_truncate, path, length);
    if (fails(TRUNCATE)) return -1;
    int result = syscall(SYS_truncate, path, length);
    if (!result && !stat(path, &info)) record(R_TRUNCATE, info.st_ino, NULL, 0, length, NULL, 0);
    return result;
}

int truncate(const char *path, off_t length) { return truncate64(path, length); }

/* Its copies would bypass this file; after this error callers read and write instead. */
ssize_t sendfile64(int to, int from, off64_t *offset, size_t count) {
    if (!file_below(to)) return syscall(SYS_sendfile, to, from, offset, count);
    errno = EINVAL;
    return -1;
}

ssize_t sendfile(int to, int from, off_t *offset, size_t count) { return sendfile64(to, from, offset, count); }

int posix_fallocate64(int file, off64_t offset, off64_t length) {
    if (!file_below(file)) return REAL(posix_fallocate64)(file, offset, length);
    if (over_quota(file, offset + length) || fails(TRUNCATE)) return errno;
    return REAL(posix_fallocate64)(file, offset, length);
}

int posix_fallocate(int file, off_t offset, off_t length) { return posix_fallocate64(file, offset, length); }

/* --- writes through mapped memory -------------------------------------------------------------- */

static uint64_t mapped[1024];
static unsigned mapped_count;

static int is_mapped(uint64_t inode) {
    for (unsigned at = 0; at < mapped_count && at < 1024; at++)
        if (mapped[at] == inode) return 1;
    return 0;
}

void *mmap64(void *at, size_t length, int access, int flags, int file, off64_t offset) {
    if (!(flags & MAP_ANONYMOUS) && file_below(file)) {
        if (fails(MAP)) return MAP_FAILED;
        if (access & PROT_WRITE && flags & MAP_SHARED) {
            pthread_mutex_lock(&tracing);
            if (!is_mapped(inode_of(file))) mapped[mapped_count++ % 1024] = inode_of(file);
            pthread_mutex_unlock(&tracing);
        }
    }
    return (void *)syscall(SYS_mmap, at, length, access, flags, file, offset);
}

/* Such writes are invisible when they are made, so a sync records the file's whole contents. */
static void record_mapped(int file) {
    struct stat info;
    if (trace < 0 || fstat(file, &info) || !S_ISREG(info.st_mode) || !is_mapped(info.st_ino)) return;
    char *content = malloc(info.st_size + 1);
    if (content && syscall(SYS_pread64, file, content, info.st_size, 0) == info.st_size)
        record(R_WRITE, info.st_ino, NULL, 0, 0, content, info.st_size);
    free(content);
}

/* --- syncs ------------------------------------------------------------------------------------- */

static int sync_below(int file, int (*real)(int)) {
    __sync_add_and_fetch(&control->syncs_begun, 1);
    while (control->hold_syncs) usleep(1000);
    if (control->sync_delay_us) usleep(control->sync_delay_us);
    int failed = fails(SYNC);
    record_mapped(file);
    int result = failed ? -1 : real(file);
    record(failed ? R_SYNC_FAILED : R_SYNC, inode_of(file), NULL, 0, 0, NULL, 0);
    __sync_add_and_fetch(&control->syncs_done, 1);
    return result;
}

int fsync(int file) {
    return file_below(file) ? sync_below(file, REAL(fsync)) : REAL(fsync)(file);
}

int fdatasync(int file) {
    return file_below(file) ? sync_below(file, REAL(fdatasync)) : REAL(fdatasync)(file);
}
