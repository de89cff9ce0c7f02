//===- SvgText.h - the text of an SVG picture *- C++ -*-===//

#ifndef BOWLINE_CHECKER_SVGTEXT_H
#define BOWLINE_CHECKER_SVGTEXT_H

#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>

namespace bowline {

/// The text as content or attribute of XML 1.0. Bytes that are no UTF-8, and characters that XML forbids, become
/// U+FFFD.
std::string escapeXml(absl::string_view text);

/// The first characters of a UTF-8 text, at most `most`; the last one is an ellipsis where some were left out. A byte
/// that is no UTF-8 counts as a character.
std::string shortened(absl::string_view text, size_t most);

/// A length of the picture, in pixels with one decimal at most: "12", "12.5".
std::string pixels(double value);

/// "512 B", "1.50 KiB", "981.8 KiB"
std::string describeBytes(uint64_t bytes);

/// "0 s", "1.25 µs", "98.7 ms", "12.3 s": three digits.
std::string describeSeconds(double seconds);

/// The distance of the marks of an axis: 1, 2 or 5 times a power of ten, so that [0, length] has at most `most` of
/// them; 0 unless the length is positive.
double distanceOfMarks(double length, unsigned most);

/// Elements of an SVG picture, one a line. All lengths are pixels; texts and titles are escaped here.
class SvgText {
public:
  /// A white picture, whatever the viewer's own background is. `styles` is the content of a style element, in CSS.
  SvgText(double width, double height, absl::string_view title, absl::string_view styles);

  /// Groups are for scripts that read the picture, by their class and their data.
  void beginGroup(absl::string_view style, absl::string_view role);
  void endGroup();

  /// A text whose anchor is at (x, y); its style says which end of it that is. The viewer shows `title` for the
  /// element under the pointer; nothing if empty.
  void text(absl::string_view style, double x, double y, absl::string_view text, absl::string_view title = "");
  void rectangle(absl::string_view style, double x, double y, double width, double height,
                 absl::string_view title = "");
  void line(absl::string_view style, double x1, double y1, double x2, double y2);
  void circle(absl::string_view style, double x, double y, double radius, absl::string_view title = "");
  /// `path` is in SVG's own language.
  void path(absl::string_view style, absl::string_view path, absl::string_view title = "");

  /// The complete picture.
  std::string finish() &&;

private:
  void close(absl::string_view element, absl::string_view title);

  std::string out_;
};

} // namespace bowline

#endif // BOWLINE_CHECKER_SVGTEXT_H
