// A file that is being downloaded: "<target>.partial", and beside it its origin, with the validator
// (an ETag or a date) of what the server was sending, for going on later.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "base/disk_space.h"
#include "base/status.h"
#include "base/units.h"
#include "hub/origin.h"
#include "hub/sha256.h"

namespace strata {

using Note = std::function<void(const std::string&)>;

// Keeps other processes that ask for the same out of a folder while it lives.
class FolderLock {
 public:
  // Waits where another process has it, and says so.
  static Result<FolderLock> take(const std::string& folder, const Note& note);

  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Movable, closes itself. Held under a lock, which other processes wait for.
class PartialFile {
 public:
  // Takes over what an earlier try left there. Waits where another process fetches it from `source`
  // or has not said from where, and fails where it is from elsewhere.
  static Result<PartialFile> open(const std::string& target, const std::string& source,
                                  const Note& note);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile();

  const std::string& path() const { return path_; }
  Bytes size() const { return size_; }
  const Origin& origin() const { return origin_; }
  Bytes free_bytes() const { return free_disk_bytes(descriptor_); }

  // Empties it for a download from there.
  Status restart(const Origin& origin);
  Status append(std::span<const std::uint8_t> bytes);
  std::string sha256();  // of all of it; REQUIRES: nothing is appended afterwards

  // Stores it for good under its target's name, in place of what had that, with `sha256` on record.
  Status commit(const std::string& sha256);
  void discard();

 private:
  PartialFile(std::string target, int descriptor)
      : target_(std::move(target)), path_(target_ + ".partial"), descriptor_(descriptor) {}

  Status load();

  std::string target_;
  std::string path_;
  int descriptor_;
  Bytes size_ = 0;
  Origin origin_;
  Sha256 digest_;
};

// Makes the entries of the folder at `path` durable.
Status sync_folder(const std::string& path);

}  // namespace strata
