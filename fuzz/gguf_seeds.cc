// gguf_seeds FOLDER: writes the seeds of gguf_fuzz.
#include <cstdio>
#include <string>

#include "base/file.h"
#include "gguf/test_support.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: gguf_seeds FOLDER\n", stderr);
    return 2;
  }
  for (const auto& sample : strata::testing::sample_files()) {
    const std::string path = std::string(argv[1]) + "/" + sample.name + ".gguf";
    auto file = strata::File::create(path);
    const strata::Status status = file.ok() ? file->write(sample.bytes) : file.status();
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.message().c_str());
      return 1;
    }
  }
}
