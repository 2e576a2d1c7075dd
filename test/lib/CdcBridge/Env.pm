package CdcBridge::Env;

# Where things are, how long to wait, and who we are: what Source, Postgres, Pipeline and the demo share.
#
# A script that loads this as root is started again as "nobody": neither PostgreSQL nor a MySQL server likes to run as
# root, and nothing here needs it. Servers are direct children that die with the script (setpriv --pdeathsig) unless
# they are told to outlive it; temporary folders go when it ends.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use File::Temp ();
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(time);

our @EXPORT_OK = qw(after_poll close_inherited tree build_dir servers_dir free_port is_polling new_folder poll_until random_seed spawn reap run_program slurp timeout
  with_template copy_tree);

my $tree;
BEGIN { $tree = abs_path(dirname(__FILE__) . '/../../..'); }

BEGIN
{
	if ($> == 0 && !$^C)
	{
		# /tmp and not root's home, which nobody could not read
		@ENV{qw(HOME USER LOGNAME)} = ('/tmp', 'nobody', 'nobody');
		exec('setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups', $^X, (map { "-I$_" } @INC), $0, @ARGV)
		  or die "could not become an unprivileged user: $!\n";
	}
}

sub tree { return $tree; }
sub build_dir { return $ENV{CDC_BUILD_DIR} // "$tree/build"; }
sub servers_dir { return build_dir() . '/servers'; }

# The seed of a random test, from CDC_TEST_SEED or made up; rand() goes by it, and it is printed.
sub random_seed
{
	my $seed = $ENV{CDC_TEST_SEED} // int(rand(1e9));
	print "# CDC_TEST_SEED=$seed\n";
	srand($seed);
	return $seed;
}

# Seconds that a poll waits before it counts as failed; the same variable as in PostgreSQL's own tests.
sub timeout { return $ENV{PG_TEST_TIMEOUT_DEFAULT} || 180; }

# Call CODE until it is true. Returns what it returned, or nothing when the time is over.
our $polls = 0;
my @after_poll;
sub poll_until
{
	my ($code, $seconds) = @_;
	my $deadline = time() + ($seconds // timeout());
	my $pause = 0.02;
	my $result;
	{
		local $polls = $polls + 1;
		while (1)
		{
			$result = $code->();
			last if $result || time() > $deadline;
			select(undef, undef, undef, $pause);
			$pause = $pause * 1.5 if $pause < 0.1;
		}
	}
	$_->() for $polls ? () : splice(@after_poll);
	return $result ? $result : ();
}

# Is something being polled? Then what is asked will be asked again, and CODE is called when that is over.
sub is_polling { return $polls > 0; }
sub after_poll { push @after_poll, $_[0]; return; }

# Ports below the range from which the system picks for outgoing connections: a server that is restarted must find its
# port still free.
sub free_port
{
	for (1 .. 1000)
	{
		my $port = 10000 + int(rand(22000));
		my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp', Listen => 1);
		return $port if $socket;
	}
	die "found no free port\n";
}

# A new temporary folder, removed when this process ends. Short, because paths of unix sockets have 107 bytes.
my @folders;
sub new_folder
{
	my ($name, %option) = @_;
	my $folder = File::Temp::tempdir("cdc-$name-XXXXXX", DIR => $ENV{TMPDIR} // '/tmp');
	push @folders, [ $$, $folder ] unless $option{keep};
	return $folder;
}

# Start PROGRAM as a child with its output in LOG. It gets a session of its own, so that a Ctrl-C at the terminal reaches
# the script only, which then ends its servers in order.
sub spawn
{
	my ($log, $outlive, @program) = @_;
	my $pid = fork() // die "could not fork: $!\n";
	return $pid if $pid;
	POSIX::setsid();
	open(STDIN, '<', '/dev/null');
	open(STDOUT, '>>', $log);
	open(STDERR, '>&', \*STDOUT);
	close_inherited();
	unshift @program, 'setpriv', '--pdeathsig', 'KILL' unless $outlive;
	exec(@program) or POSIX::_exit(127);
}

# What lives longer than we do must not hold our pipes open: whoever reads them would wait for ever.
sub close_inherited
{
	opendir(my $folder, '/proc/self/fd') or return;
	my @inherited = grep { /^\d+$/ && $_ > 2 } readdir($folder);
	closedir($folder);
	POSIX::close($_) for @inherited;
}

# Wait for a child to end; true when it has.
sub reap
{
	my ($pid, $seconds) = @_;
	return poll_until(sub { my $got = waitpid($pid, POSIX::WNOHANG()); return $got == $pid || $got == -1; }, $seconds);
}

# Run a program to its end with its output in a log that the error message shows.
sub run_program
{
	my ($log, @program) = @_;
	my $pid = spawn($log, 0, @program);
	waitpid($pid, 0);
	return if $? == 0;
	die "@program[0 .. 0] failed (status $?):\n" . slurp($log);
}

sub slurp
{
	my ($file) = @_;
	open(my $in, '<', $file) or return "(could not read $file: $!)";
	local $/;
	return scalar <$in>;
}

sub copy_tree
{
	my ($from, $to) = @_;
	system('cp', '-a', '--reflink=auto', $from, $to) == 0 or die "could not copy $from to $to\n";
}

# Make a data directory: CODE->(folder) initialises it. The runner gives all its tests one CDC_TEMPLATE_DIR, where the
# first one leaves a copy for the others.
sub with_template
{
	my ($name, $folder, $code) = @_;
	my $templates = $ENV{CDC_TEMPLATE_DIR};
	return $code->($folder) unless $templates;
	make_path($templates);
	open(my $lock, '>', "$templates/$name.lock") or die "$templates/$name.lock: $!\n";
	flock($lock, 2) or die "flock: $!\n";
	if (!-e "$templates/$name.ready")
	{
		remove_tree("$templates/$name");
		$code->("$templates/$name");
		open(my $ready, '>', "$templates/$name.ready");
	}
	close($lock);
	copy_tree("$templates/$name", $folder);
}

$SIG{$_} = sub { exit(130); } for qw(INT TERM HUP);

# The runner's limit for one test as a whole, so that a test that hangs ends, in order, and the others run.
$SIG{ALRM} = sub { warn "this test took longer than $ENV{CDC_TEST_LIMIT} s\n"; exit(124); };
alarm($ENV{CDC_TEST_LIMIT}) if $ENV{CDC_TEST_LIMIT};

END
{
	my $status = $?;
	for (@folders)
	{
		my ($pid, $folder) = @$_;
		remove_tree($folder, { error => \my $ignored }) if $pid == $$ && !$ENV{CDC_KEEP};
	}
	$? = $status;
}

1;
