// Reads any bytes as each of the texts that servers and other programs' caches give: the first byte
// says which.
#include <cstdint>
#include <string_view>

#include "hub/download.h"
#include "hub/package_index.h"
#include "hub/repository.h"
#include "hub/source.h"
#include "hub/stores.h"

namespace {

void read_listing(std::string_view text) {
  const auto listing = strata::parse_hub_listing(text);
  if (!listing.ok()) return;
  for (const char* selector : {"", "Q4_K_M", "a/m.gguf"})
    if (const auto files = strata::choose_hub_files(*listing, selector); files.ok())
      for (const strata::HubFile& file : *files)
        if (!strata::is_safe_path(file.path)) __builtin_trap();
}

void read_index(std::string_view text, std::string_view type) {
  const auto wheels = strata::parse_index_page(text, type);
  if (!wheels.ok()) return;
  for (const char* version : {"", "1.0"})
    if (const auto wheel = strata::choose_wheel(*wheels, version); wheel.ok())
      if (!strata::is_safe_name(wheel->file) || !strata::is_safe_name(wheel->version))
        __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'h': read_listing(text); break;
    case 'j': read_index(text, "application/json"); break;
    case 'p': read_index(text, "text/html"); break;
    case 'o':
      if (const auto digest = strata::parse_ollama_manifest(text); digest.ok())
        if (digest->size() != 64) __builtin_trap();
      break;
    case 's': (void)strata::parse_source(text).ok(); break;
    case 'r': (void)strata::parse_content_range(text); break;
    default: break;
  }
  return 0;
}
