#include "read_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/memory_ledger.h"
#include "base/printable.h"

namespace strata::apps {
namespace {

Result<std::string> read_to_end(int descriptor, std::string_view name, Bytes limit) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("cannot read {}: {}", name, std::strerror(errno));
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > limit)
      return invalid_argument("{} has more than {}, the most that is read of it", name,
                              human_bytes(limit));
  }
}

}  // namespace

Result<std::string> read_whole(const std::string& path, Bytes limit) {
  const std::string name = printable(path);
  // By its path, one that is open for writing alone could be read, and a socket could not.
  const int descriptor = path == "/dev/stdin" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                              : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(path, error);
    if (error) return not_found("{}: there is no such file", name);
    return io_error("cannot read {}: it is a link to {}, where nothing is", name,
                    printable(target.string()));
  }
  if (descriptor < 0) return io_error("cannot open {}: {}", name, std::strerror(errno));
  auto text = read_to_end(descriptor, name, limit);
  ::close(descriptor);
  return text;
}

Result<std::string> read_standard_input() {
  return read_to_end(STDIN_FILENO, "standard input", kMostInputBytes);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace strata::apps
