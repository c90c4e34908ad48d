// What a model hub says of a repository, and which of its files make the wanted model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace strata {

struct HubFile {
  std::string path;  // inside the repository; safe
  Bytes bytes = 0;
  std::string sha256;  // empty where the hub does not say
};

struct HubListing {
  std::string commit;
  std::vector<HubFile> files;  // the GGUF files alone
};

// The JSON of GET /api/models/<repository>?blobs=true.
// https://huggingface.co/docs/hub/api
Result<HubListing> parse_hub_listing(std::string_view json);

// The file, or the parts of a split one in order, that `selector` names: a path, a file name, or a
// quantization that is a word of the path. Without one: the only model, or else Q4_K_M.
Result<std::vector<HubFile>> choose_hub_files(const HubListing& listing, std::string_view selector);

// Whether `word` stands in `text`, whatever its case, between '-', '.', '/', before it also '_', or
// the ends: Q4_K is no word of model-Q4_K_M.
bool has_word(std::string_view text, std::string_view word);

bool is_gguf(std::string_view path);  // by its name

// A model's path without .gguf and the number of a part.
std::string model_stem(const std::string& path);

// Not language models, though they lie beside them: image projectors and importance matrices.
bool is_companion(std::string_view path);

}  // namespace strata
