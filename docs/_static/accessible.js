// What the theme leaves out for readers without a mouse or a screen.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("pre, .table-wrapper").forEach((box) => { box.tabIndex = 0; });
  document.querySelectorAll(".sphx-glr-thumbcontainer a").forEach((link) => link.setAttribute("aria-label", link.textContent));
  document.querySelectorAll("th").forEach((cell) => { if (!cell.textContent.trim()) cell.setAttribute("role", "presentation"); });
  document.querySelectorAll("[role=heading]").forEach((title) => title.setAttribute("aria-level", "2"));
  document.querySelectorAll("aside.toc-drawer").forEach((part) => part.setAttribute("aria-label", "On this page"));
  document.querySelectorAll(".content-icon-container").forEach((part) => part.setAttribute("role", "region"));
  document.querySelectorAll(".content-icon-container").forEach((part) => part.setAttribute("aria-label", "Page"));
});
