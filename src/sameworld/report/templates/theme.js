(function () {
  var root = document.documentElement;
  var button = document.getElementById("theme");
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function current() {
    return root.dataset.theme || (dark.matches ? "dark" : "light");
  }
  function show() {
    button.querySelector(".theme-word").textContent = current() === "dark" ? "Dark" : "Light";
  }
  button.addEventListener("click", function () {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    show();
  });
  dark.addEventListener("change", show);
  show();
})();
