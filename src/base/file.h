// A regular file held open for positioned reads or for writing from the start.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "base/units.h"

namespace strata {

// Movable, closes itself. Every error names the path. `read_exactly` may be called from any
// thread; writing is for one thread.
class File {
 public:
  // Fails with kNotFound when there is nothing at `path`, and on anything but a regular file.
  static Result<File> open(const std::string& path);
  // Creates `path`, or empties the file that is there.
  static Result<File> create(const std::string& path);
  // Fails where anything is at `path`, be it a link.
  static Result<File> create_new(const std::string& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  Bytes size() const { return size_; }  // when it was opened, plus what was written since
  int descriptor() const { return descriptor_; }

  // Fills `out` from `offset`; a file that ends before is an error, never a short read.
  Status read_exactly(Bytes offset, std::span<std::uint8_t> out) const;
  Status write(std::span<const std::uint8_t> bytes);
  // Returns when what was written is on the disk.
  Status sync();
  // Ends writing; unlike the destructor it reports what the system could not store.
  Status close();

 private:
  static Result<File> create(const std::string& path, int flag);
  File(std::string path, int descriptor, Bytes size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

  std::string path_;
  int descriptor_ = -1;
  Bytes size_ = 0;
};

// Refuses a path where a file lies or none can be made: what a command writes replaces nothing.
// A character device, such as /dev/null, takes what is written to it.
Status check_new_file(const std::string& path);
// Checks the same, and creates the file or opens the device.
Result<File> create_output(const std::string& path);

}  // namespace strata
