// A file from an address to the disk: resumed where it broke off, checked, named only when whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "hub/http.h"
#include "hub/partial_file.h"

namespace strata {

struct RemoteFile {
  std::string source;  // for users, and the same each time; without secrets
  std::string url;
  std::vector<std::string> headers;
  std::string sha256;          // lower case; empty: unknown
  std::optional<Bytes> bytes;  // as its index says
};

struct PullHooks {
  std::function<void(const std::string& file, Bytes done, Bytes total)> progress;
  Note note;
};

enum class IfThere {
  kKeep,     // fails where it may be another file
  kReplace,  // unless its SHA-256 says that it is the same
};

// Makes `target` that file; its folder must be there. What is there under that name is taken for
// the same where its SHA-256 is the wanted one, or where none is known and it came from the same
// source, which does not say that it has changed since. `check` sees the whole file before it gets
// its name.
Status download(Http& http, const RemoteFile& remote, const std::string& target, IfThere if_there,
                const std::function<Status(const std::string& path)>& check,
                const PullHooks& hooks);

// The refusal of a target that is there already, from `origin`, where `source` is asked for.
Status is_another(const std::string& target, const Origin& origin, const std::string& source,
                  bool surely);

// "bytes 5-9/10" or "bytes */10".
struct ContentRange {
  std::optional<Bytes> first;
  std::optional<Bytes> total;
};
ContentRange parse_content_range(std::string_view text);

}  // namespace strata
