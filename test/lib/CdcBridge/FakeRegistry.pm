package CdcBridge::FakeRegistry;

# A fake schema registry on loopback: it takes schemas under subjects, gives each text a number, and refuses what it was told to.
#
#   my $fake = CdcBridge::FakeRegistry->new(username => 'me', password => 'secret');
#   $fake->url;                       # http://127.0.0.1:port
#   my @registered = $fake->schemas;  # [ id, subject, schema as text ], in order
#   $fake->behave('409');             # every request is answered with that status from now on; 'silent': with nothing
#   $fake->behave('honest');

use strict;
use warnings;

use CdcBridge::Env qw(free_port new_folder reap slurp);
use IO::Socket::INET;
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use POSIX ();

sub new
{
	my ($class, %option) = @_;
	my $self = bless { dir => new_folder('registry'), port => free_port(), %option }, $class;
	$self->behave('honest');
	my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $self->{port}, Listen => 16, ReuseAddr => 1) or die "fake registry: $!\n";
	$self->{parent} = $$;
	$self->{pid} = fork() // die "fork: $!\n";
	if ($self->{pid} == 0)
	{
		$self->_serve($socket);
		POSIX::_exit(0);
	}
	return $self;
}

sub url { return "http://127.0.0.1:$_[0]{port}"; }

sub behave
{
	my ($self, $how) = @_;
	open(my $out, '>', "$self->{dir}/behave.new") or die $!;
	print $out $how;
	close($out);
	rename("$self->{dir}/behave.new", "$self->{dir}/behave") or die $!;
	return $self;
}

sub schemas
{
	my ($self) = @_;
	return -e "$self->{dir}/schemas" ? map { [ split(/\t/, $_, 3) ] } split(/\n/, slurp("$self->{dir}/schemas")) : ();
}

sub _serve
{
	my ($self, $socket) = @_;
	my %id;
	my $want = defined $self->{username} ? 'Basic ' . encode_base64("$self->{username}:$self->{password}", '') : undef;
	while (1)
	{
		my $client = $socket->accept or next;
		my ($head, $body) = ('', '');
		while (my $line = <$client>) { last if $line =~ /^\r?\n$/; $head .= $line; }
		read($client, $body, $1) if $head =~ /^Content-Length: (\d+)/mi;
		my ($subject) = $head =~ m{^POST /subjects/([^/ ]+)/versions };
		$subject =~ s/%([0-9A-F]{2})/chr(hex($1))/ge if defined $subject;
		my $how = slurp("$self->{dir}/behave");
		if ($how eq 'silent') { push @{ $self->{held} }, $client; next; }
		my ($status, $answer) = (200);
		if ($how ne 'honest') { ($status, $answer) = ($how, qq({"error_code":$how,"message":"as it was told"})); }
		elsif (defined $want && $head !~ /^Authorization: \Q$want\E\r?$/m) { ($status, $answer) = (401, '{"error_code":401,"message":"Unauthorized"}'); }
		elsif (!defined $subject) { ($status, $answer) = (404, '{"error_code":404,"message":"nothing there"}'); }
		else
		{
			my $schema = JSON::PP->new->decode($body)->{schema};
			my $id = $id{$schema} //= 256 + keys %id;
			open(my $out, '>>:utf8', "$self->{dir}/schemas") or die $!;
			print $out "$id\t$subject\t$schema\n";
			close($out);
			$answer = qq({"id":$id});
		}
		print $client "HTTP/1.1 $status Answer\r\nContent-Type: application/json\r\nContent-Length: " . length($answer) . "\r\nConnection: close\r\n\r\n$answer";
		close($client);
	}
	return;
}

sub DESTROY
{
	my ($self) = @_;
	return if $$ != $self->{parent} || !$self->{pid};
	local $?;
	kill 'KILL', $self->{pid};
	waitpid($self->{pid}, 0);
	return;
}

1;
