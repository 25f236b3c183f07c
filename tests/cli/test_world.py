"""Which plane a client talks to: the one that a flag, the environment, a file or the local cloud of the folder names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from runtender.cli.main import cli
from runtender.client.configuration import Configuration, Source, gather
from runtender.errors import Rejected, RuntenderError
from runtender.local.home import CloudHome

BOTH = {"SF_PROJECT_ID": "prod", "SF_CODE_BUCKET": "prod-code"}


@pytest.fixture
def said(tmp_path):
    """Gather in a folder, of a person whose home is beside it."""

    def gathered(environment=None, *, start: Path = tmp_path, flags=None) -> Configuration:
        return gather({"HOME": str(tmp_path / "home"), **(environment or {})}, start, flags or {})

    return gathered


@pytest.fixture
def write(tmp_path):
    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    return write


def winners(configuration):
    return {choice.name: (choice.value, choice.source) for choice in configuration.choices()}


class TestLocalCloud:
    def test_the_one_of_a_folder_above_is_used(self, home, local_variables, said):
        below = home.folder / "deep" / "below"
        below.mkdir(parents=True)
        configuration = said(start=below)

        assert configuration.values == local_variables
        assert {choice.source for choice in configuration.choices()} == {Source.LOCAL_CLOUD}

    def test_it_goes_before_environment_and_files_and_is_not_mixed_with_them(
        self, home, local_variables, said, write
    ):
        write(".runtender.toml", 'plane_id = "blue"')

        assert said({"SF_ENTRYPOINT": "a:b"}).values == local_variables

    def test_a_named_backend_looks_past_it(self, home, said):
        assert said({"SF_BACKEND": "google", **BOTH}).values == {"SF_BACKEND": "google", **BOTH}

    def test_a_project_named_by_a_flag_looks_past_it(self, home, said):
        assert said(flags=BOTH).values == BOTH

    def test_a_project_that_loses_to_it_is_told(self, home, said):
        assert "SF_BACKEND=google for prod" in said(BOTH).warning

    def test_one_that_does_not_run_counts_for_nothing(self, tmp_path, local_variables, said):
        CloudHome(tmp_path).root.mkdir()
        CloudHome(tmp_path).write_state({"environment": local_variables})

        assert said(BOTH).values == BOTH

    @pytest.mark.parametrize("content", ["", "[]", "{}", '{"environment": 1}'], ids=repr)
    def test_a_broken_state_file_is_named(self, home, said, content):
        home.state.write_text(content)

        with pytest.raises(RuntenderError, match=r"local\.json .*runtender local down"):
            said()


class TestOrderOfTruth:
    @pytest.fixture(autouse=True)
    def _everybody_speaks(self, write):
        write("home/.config/gcloud/active_config", "work\n")
        write("home/.config/gcloud/configurations/config_work", "[core]\nproject = of-gcloud\n")
        write(
            "home/.config/runtender/config.toml", 'project_id = "of-user"\nregion = "of-user"\nplane_id = "u"'
        )
        write(".runtender.toml", 'project_id = "of-project"\nregion = "of-project"\napi_budget = 7')

    @pytest.mark.parametrize(
        ("flags", "environment", "removed", "winner"),
        [
            ({"SF_PROJECT_ID": "of-flag"}, {"SF_PROJECT_ID": "of-env"}, (), ("of-flag", Source.FLAG)),
            ({}, {"SF_PROJECT_ID": "of-env"}, (), ("of-env", Source.ENVIRONMENT)),
            ({}, {}, (), ("of-project", Source.PROJECT_FILE)),
            ({}, {}, (".runtender.toml",), ("of-user", Source.USER_FILE)),
            (
                {"SF_CODE_BUCKET": "b"},
                {},
                (".runtender.toml", "home/.config/runtender/config.toml"),
                ("of-gcloud", Source.GCLOUD),
            ),
        ],
        ids=["flag", "environment", "project file", "user file", "gcloud"],
    )
    def test_the_first_that_says_it_wins(self, said, tmp_path, flags, environment, removed, winner):
        for name in removed:
            (tmp_path / name).unlink()

        assert winners(said(environment, flags=flags))["SF_PROJECT_ID"] == winner

    def test_each_setting_is_taken_on_its_own_and_the_overruled_are_known(self, said, tmp_path):
        below = tmp_path / "deep" / "below"
        below.mkdir(parents=True)
        configuration = said({"SF_CODE_BUCKET": "c"}, start=below)
        region = next(each for each in configuration.choices() if each.name == "SF_REGION")

        assert winners(configuration) == {
            "SF_API_BUDGET": ("7", Source.PROJECT_FILE),
            "SF_CODE_BUCKET": ("c", Source.ENVIRONMENT),
            "SF_PLANE_ID": ("u", Source.USER_FILE),
            "SF_PROJECT_ID": ("of-project", Source.PROJECT_FILE),
            "SF_REGION": ("of-project", Source.PROJECT_FILE),
        }
        assert (region.where, region.overruled) == (str(tmp_path / ".runtender.toml"), (Source.USER_FILE,))

    @pytest.mark.parametrize(
        ("variables", "project"),
        [
            ({"CLOUDSDK_CORE_PROJECT": "of-variable"}, "of-variable"),
            ({"CLOUDSDK_ACTIVE_CONFIG_NAME": "play"}, "of-play"),
            ({"CLOUDSDK_CONFIG": "{tmp}/elsewhere"}, "of-elsewhere"),
        ],
        ids=["project", "configuration", "folder"],
    )
    def test_what_gcloud_is_told_counts(self, said, tmp_path, write, variables, project):
        (tmp_path / ".runtender.toml").unlink()
        write("home/.config/runtender/config.toml", 'code_bucket = "c"')
        write("home/.config/gcloud/configurations/config_play", "[core]\nproject = of-play\n")
        write("elsewhere/configurations/config_default", "[core]\nproject = of-elsewhere\n")
        variables = {name: value.format(tmp=tmp_path) for name, value in variables.items()}

        assert winners(said(variables))["SF_PROJECT_ID"] == (project, Source.GCLOUD)


def test_no_plane_at_all_says_what_to_set(said, write):
    write("home/.config/gcloud/configurations/config_default", "[core]\nproject = somewhere\n")

    with pytest.raises(Rejected, match=r"set SF_PROJECT_ID and SF_CODE_BUCKET.*runtender local up"):
        said()


_WRONG_FILES = {
    "no TOML": ("code_bucket =", "is not readable"),
    "unknown": ('code_buket = "c"', "code_buket: is not a known setting; did you mean code_bucket?"),
    "a variable": ('SF_CODE_BUCKET = "c"', "did you mean code_bucket?"),
    "a list": ('code_bucket = ["c"]', "code_bucket: is a list, a table or a date"),
    "the backend": ('backend = "embedded"', "backend: is not a known setting"),
}


@pytest.mark.parametrize(("text", "words"), _WRONG_FILES.values(), ids=_WRONG_FILES)
def test_a_file_that_is_wrong_is_named_with_what_is(said, write, text, words):
    write(".runtender.toml", text)

    with pytest.raises(Rejected) as caught:
        said()
    assert words in str(caught.value)
    assert ".runtender.toml" in str(caught.value)


def test_adopting_leaves_nothing_of_another_plane(home, local_variables, said):
    environment = {"SF_ENTRYPOINT": "a:b", "PUBSUB_EMULATOR_HOST": "x:1", "PATH": "/bin"}
    said(environment).adopt(environment)

    assert environment == {**local_variables, "PATH": "/bin"}


class TestFlags:
    @pytest.fixture(autouse=True)
    def _nothing_but_flags(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        before = dict(os.environ)
        for name in ("SF_PROJECT_ID", "SF_CODE_BUCKET", "SF_BACKEND", "SF_STORE_PATH", "SF_TOPICS_ENDPOINT"):
            os.environ.pop(name, None)
        os.environ["HOME"] = str(tmp_path)
        yield
        # What a command adopts, it leaves in the environment of its process; the next test must not meet it.
        os.environ.clear()
        os.environ.update(before)

    def test_they_reach_the_plane(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SF_BACKEND", "embedded")
        monkeypatch.setenv("SF_STORE_PATH", str(tmp_path / "store.db"))
        monkeypatch.setenv("SF_TOPICS_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setenv("SF_PROJECT_ID", "of-env")
        flags = ["--project", "of-flag", "--set", "code_bucket=c", "--set", "connection=a=b"]
        result = CliRunner().invoke(cli, [*flags, "list", "--format", "json"])

        assert (result.exit_code, result.stderr) == (0, "no runs yet; 'runtender submit CONFIG' starts one\n")
        assert (os.environ["SF_PROJECT_ID"], os.environ["SF_CONNECTION"]) == ("of-flag", "a=b")

    @pytest.mark.parametrize("text", ["code_bucket", "bucket=c", "SF_CODE_BUCKET=c"])
    def test_what_is_no_setting_is_wrong_usage(self, text):
        result = CliRunner().invoke(cli, ["--set", text, "list"])

        assert result.exit_code == 2
        assert "Invalid value for '--set'" in result.stderr
