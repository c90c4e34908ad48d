#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

#include "base/checked.h"
#include "base/printable.h"

namespace strata {
namespace {

constexpr std::size_t kLargestCall = std::size_t{1} << 30;  // Linux moves at most 2 GiB per call

std::string reason(int error) { return std::generic_category().message(error); }

Status is_there(const std::string& path) {
  return invalid_argument("{} is there already; remove it or name another file", printable(path));
}

Status cannot_open(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR)
    return not_found("{}: there is no such file", printable(path));
  if (error == EEXIST) return is_there(path);
  return io_error("{}: cannot be opened: {}", printable(path), reason(error));
}

}  // namespace

Result<File> File::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must fail below, not wait for its writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return cannot_open(path, errno);
  File file(path, descriptor, 0);
  struct stat info {};
  if (::fstat(descriptor, &info) != 0)
    return io_error("{}: cannot be examined: {}", printable(path), reason(errno));
  if (S_ISDIR(info.st_mode))
    return invalid_argument("{}: is a folder; name a file in it", printable(path));
  if (!S_ISREG(info.st_mode)) return invalid_argument("{}: is not a regular file", printable(path));
  file.size_ = static_cast<Bytes>(info.st_size);
  return file;
}

Result<File> File::create(const std::string& path) { return create(path, O_TRUNC); }

Result<File> File::create_new(const std::string& path) { return create(path, O_EXCL); }

Result<File> File::create(const std::string& path, int flag) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flag, 0666);
  if (descriptor < 0) return cannot_open(path, errno);
  return File(path, descriptor, 0);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status File::read_exactly(Bytes offset, std::span<std::uint8_t> out) const {
  const auto end = checked_add<Bytes>(offset, out.size());
  if (!end || *end > static_cast<Bytes>(std::numeric_limits<off_t>::max()))
    return invalid_argument("{}: byte {} is beyond any file", printable(path_), offset);
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), std::min(out.size(), kLargestCall),
                                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return io_error("{}: reading at byte {} failed: {}", printable(path_), offset, reason(errno));
    if (got == 0)
      return io_error("{}: ends at byte {}, {} bytes early; was it cut short while in use?",
                      printable(path_), offset, out.size());
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<Bytes>(got);
  }
  return {};
}

Status File::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestCall));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      return io_error("{}: writing at byte {} failed: {}", printable(path_), size_, reason(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    size_ += static_cast<Bytes>(put);
  }
  return {};
}

Status File::sync() {
  if (::fsync(descriptor_) == 0) return {};
  return io_error("{}: storing it failed: {}", printable(path_), reason(errno));
}

Status File::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor >= 0 && ::close(descriptor) != 0)
    return io_error("{}: closing failed: {}", printable(path_), reason(errno));
  return {};
}

Status check_new_file(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.empty()) return invalid_argument("the name of the file to write is empty");
  std::error_code error;
  if (fs::is_regular_file(path, error)) return is_there(path);
  if (fs::is_directory(path, error))
    return invalid_argument("{} is a folder; name a file in it", printable(path));
  if (fs::exists(path, error) && !fs::is_character_file(path, error))
    return invalid_argument("{} is a pipe, a socket or a disk; name a new file", printable(path));
  if (fs::is_symlink(path, error) && !fs::exists(path, error))
    return invalid_argument(
        "{} is a link to {}, which is not there; remove it or name another file", printable(path),
        printable(fs::read_symlink(path, error).string()));
  const std::string folder = fs::path(path).parent_path().string();
  if (!folder.empty() && !fs::is_directory(folder, error))
    return invalid_argument("{}: there is no folder {}", printable(path), printable(folder));
  return {};
}

Result<File> create_output(const std::string& path) {
  STRATA_TRY(check_new_file(path));
  std::error_code error;
  return std::filesystem::exists(path, error) ? File::create(path) : File::create_new(path);
}

}  // namespace strata
