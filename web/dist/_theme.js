// Runs before the first paint, so that a chosen theme does not flash. A file of its own: the content
// security policy allows no inline script.
try {
  const theme = localStorage.getItem("hubmesh-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be switched off: the system's theme it is.
}
