# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Spack: put the directory ompi_crypt among the packages of a repository of your own, and
# ompi-crypt-0.1.0.tar.gz (make dist) into the directory where you call spack:
#
#     spack install --no-checksum ompi-crypt ^openmpi@5.0.10
#
# Spack's Open MPI is installed without internal headers.  So the sources of the same release are
# fetched, too, and configured as the installed one was, for the headers.
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class OmpiCrypt(AutotoolsPackage):
    """Components of Open MPI that encrypt and authenticate messages between nodes, and MPI-IO files."""

    homepage = "https://www.open-mpi.org"
    url = f"file://{os.getcwd()}/ompi-crypt-0.1.0.tar.gz"
    manual_download = True

    license("BSD-3-Clause")

    version("0.1.0")

    variant("sodium", default=False, description="provider of AES-256-GCM: libsodium")
    variant("cryptopp", default=False, description="provider of AES-GCM: Crypto++")
    variant("munge", default=False, description="MUNGE authenticates processes")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    # Those whose sources are named below.
    depends_on("openmpi@4.1.4:4.1.8,5.0.5:5.0.10")
    depends_on("openssl@3:")
    depends_on("libsodium", when="+sodium")
    depends_on("cryptopp", when="+cryptopp")
    depends_on("munge", when="+munge")
    depends_on("python@3.9:", type="run")        # mpicrypt bench, model and tune

    # As in the recipe of openmpi.
    for release, checksum in [
        ("4.1.4", "92912e175fd1234368c8730c03f4996fe5942e7479bb1d10059405e7f2b3930d"),
        ("4.1.5", "a640986bc257389dd379886fdae6264c8cfa56bc98b71ce3ae3dfbd8ce61dbe3"),
        ("4.1.6", "f740994485516deb63b5311af122c265179f5328a0d857a567b85db00b11e415"),
        ("4.1.7", "54a33cb7ad81ff0976f15a6cc8003c3922f0f3d8ceed14e1813ef3603f22cd34"),
        ("4.1.8", "466f68e3132a1dc02710cc2011fafced8336d98359fa2dae4dddcfd5719f12a9"),
        ("5.0.5", "6588d57c0a4bd299a24103f4e196051b29e8b55fbda49e11d5b3d32030a32776"),
        ("5.0.6", "bd4183fcbc43477c254799b429df1a6e576c042e74a2d2f8b37d537b2ff98157"),
        ("5.0.7", "119f2009936a403334d0df3c0d74d5595a32d99497f9b1d41e90019fee2fc2dd"),
        ("5.0.8", "53131e1a57e7270f645707f8b0b65ba56048f5b5ac3f68faabed3eb0d710e449"),
        ("5.0.9", "dfb72762531170847af3e4a0f21d77d7b23cf36f67ce7ce9033659273677d80b"),
        ("5.0.10", "0acecc4fc218e5debdbcb8a41d182c6b0f1d29393015ed763b2a91d5d7374cc6"),
    ]:
        series = release.rpartition(".")[0]
        resource(
            name=f"openmpi-{release}",
            url=f"https://download.open-mpi.org/release/open-mpi/v{series}/openmpi-{release}.tar.bz2",
            sha256=checksum,
            placement="openmpi-source",
            when=f"^openmpi@{release}",
        )

    @property
    def openmpi_source(self):
        return join_path(self.stage.source_path, "openmpi-source")

    @run_before("configure")
    def configure_openmpi(self):
        configure = Executable(join_path(self.stage.source_path, "packaging", "configure-ompi"))
        configure(self.openmpi_source, self.spec["openmpi"].prefix)

    def configure_args(self):
        args = [
            f"--with-ompi={self.spec['openmpi'].prefix}",
            f"--with-ompi-source={self.openmpi_source}",
        ]
        absent = [f"aead-{name}" for name in ("sodium", "cryptopp") if not self.spec.satisfies(f"+{name}")]
        if absent:
            args.append("--enable-mca-no-build=" + ",".join(absent))
        return args

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        script = join_path(self.prefix, "share", "ompi-crypt", "env.sh")
        if os.path.exists(script):
            env.extend(EnvironmentModifications.from_sourcing_file(script))
