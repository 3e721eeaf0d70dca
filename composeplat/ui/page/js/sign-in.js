// Takes the code from the page that answers the sign-in form, keeps it for this tab, and opens the real page.
// It is replaced in the tab's history, so that "back" does not send the form again.
"use strict";

sessionStorage.setItem("token", document.querySelector("meta[name=code]").content);
location.replace("/");
