#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/printable.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = kMiB;

Status failed(const std::string& path, std::string_view what) {
  return io_error("{}: {} failed: {}", printable(path), what,
                  std::generic_category().message(errno));
}

// `check`: whether to wait where another process has the lock.
Status lock_exclusively(int descriptor, const std::string& path, const Note& note,
                        const std::function<Status()>& check) {
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return failed(path, "locking");
  STRATA_TRY(check());
  note(fmt::format("another process is fetching {}: waiting for it", printable(path)));
  while (::flock(descriptor, LOCK_EX) != 0)
    if (errno != EINTR) return failed(path, "locking");
  return {};
}

}  // namespace

Result<FolderLock> FolderLock::take(const std::string& folder, const Note& note) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return failed(folder, "opening the folder");
  FolderLock lock(descriptor);
  STRATA_TRY(lock_exclusively(descriptor, folder, note, [] { return Status(); }));
  return lock;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<PartialFile> PartialFile::open(const std::string& target, const std::string& source,
                                      const Note& note) {
  const std::string path = target + ".partial";
  for (const std::string& record : {origin_path(target), origin_path(path)})
    if (std::error_code error; fs::is_directory(record, error))
      return invalid_argument("{}: is a folder, where the source of a model is kept; remove it",
                              printable(record));
  const auto check_source = [&]() -> Status {
    const std::string other = read_origin(path).source;
    if (other.empty() || other == source) return {};
    return invalid_argument("{}: another process is fetching it from {}; wait for that, or end it",
                            printable(target), printable(other));
  };
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) return failed(path, "creating it");
    PartialFile file(target, descriptor);
    STRATA_TRY(lock_exclusively(descriptor, target, note, check_source));
    // While this process waited, the other may have given the file its final name.
    struct stat mine {
    }, there{};
    if (::fstat(descriptor, &mine) != 0) return failed(path, "examining it");
    if (::lstat(path.c_str(), &there) != 0 || there.st_ino != mine.st_ino) continue;
    STRATA_TRY(file.load());
    return file;
  }
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : target_(std::move(other.target_)),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      origin_(std::move(other.origin_)),
      digest_(std::move(other.digest_)) {}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// Hashes what is there.
Status PartialFile::load() {
  origin_ = read_origin(path_);
  std::vector<std::uint8_t> buffer(kReadBytes);
  while (true) {
    const ssize_t got =
        ::pread(descriptor_, buffer.data(), buffer.size(), static_cast<off_t>(size_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path_, "reading");
    if (got == 0) return {};
    digest_.update({buffer.data(), static_cast<std::size_t>(got)});
    size_ += static_cast<Bytes>(got);
  }
}

Status PartialFile::restart(const Origin& origin) {
  if (::ftruncate(descriptor_, 0) != 0) return failed(path_, "emptying it");
  size_ = 0;
  digest_.restart();
  origin_ = origin;
  return write_origin(path_, origin);
}

Status PartialFile::append(std::span<const std::uint8_t> bytes) {
  digest_.update(bytes);
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == ENOSPC || errno == EDQUOT))
      return resource_exhausted("{}: the disk is full; make room and pull again to go on",
                                printable(path_));
    if (put < 0) return failed(path_, "writing");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    size_ += static_cast<Bytes>(put);
  }
  return {};
}

std::string PartialFile::sha256() { return digest_.hex(); }

Status PartialFile::commit(const std::string& sha256) {
  if (::fsync(descriptor_) != 0) return failed(path_, "storing it");
  origin_.sha256 = sha256;
  STRATA_TRY(write_origin(path_, origin_));
  const std::string origin = origin_path(target_);
  if (::rename(origin_path(path_).c_str(), origin.c_str()) != 0) return failed(origin, "naming it");
  if (::rename(path_.c_str(), target_.c_str()) != 0) return failed(target_, "naming it");
  return sync_folder(fs::path(target_).parent_path().string());
}

void PartialFile::discard() {
  ::unlink(origin_path(path_).c_str());
  ::unlink(path_.c_str());
}

Status sync_folder(const std::string& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return failed(path, "opening the folder");
  // Some file systems do not sync folders and say EINVAL.
  const bool stored = ::fsync(folder) == 0 || errno == EINVAL;
  Status status = stored ? Status() : failed(path, "storing the folder");
  ::close(folder);
  return status;
}

}  // namespace strata
