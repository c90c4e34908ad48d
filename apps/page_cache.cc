#include "page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/file.h"

namespace strata::apps {

bool drop_pages(const std::string& path) {
  auto file = File::open(path);
  // What is not on the disk yet is not forgotten.
  if (!file.ok() || file->size() == 0 || !file->sync().ok()) return false;
  if (::posix_fadvise(file->descriptor(), 0, 0, POSIX_FADV_DONTNEED) != 0) return false;
  const auto size = static_cast<std::size_t>(file->size());
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file->descriptor(), 0);
  if (mapped == MAP_FAILED) return false;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(ceil_div(size, page));
  const bool told = ::mincore(mapped, size, resident.data()) == 0;
  ::munmap(mapped, size);
  return told && std::ranges::none_of(resident, [](unsigned char flags) { return flags & 1; });
}

}  // namespace strata::apps
